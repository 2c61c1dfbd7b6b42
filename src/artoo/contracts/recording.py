"""Records for replay and resumption, with the configuration of a task and all outside input of its roles.

With these records a log can be replayed without a model, a tool or a store, and continued after a crash.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from artoo.contracts.base import Contract
from artoo.contracts.plan import MOST_SUBTASKS, Effort
from artoo.contracts.settling import ApplyMode, ChangeClass


class ModelKnown(Contract):
    """The facts about a tier's model that were known when the task began (`ports.model.Known`)."""

    small: bool = False
    window: int = 32_768
    images: bool = False


class AskedBy(Contract):
    """The program that sent the request: its protocol (`mcp`, `acp`, `a2a`), its name and its version.

    Name and version are claims of the program that are not verified."""

    protocol: str
    client: str = ""
    version: str = ""

    @property
    def label(self) -> str:
        """Return protocol, name and version as one text, for records."""
        return " ".join(part for part in (self.protocol, self.client, self.version) if part)


Numbers = dict[str, float | int | str]
"""Hyperparameters by name."""


class TaskOpened(Contract):
    """The configuration with which a task runs. It is the first message of every task; user → no recipient.

    `artoo` is the version that ran it. `hyperparameters` are those of artoo.control, by name. `seconds` and
    `steps` of an attempt are used in logs of version 0.1. `max_calls`, `max_tokens`, `max_money` and the time
    budget apply until EffortChosen; None means no limit. `fixed` names the budgets that no effort changes;
    `effort` is the user's choice (None: the plan's). `plan`: the user approves each plan before it runs. `allow`
    are the permissions given for this task only; `apply` is its mode for applying changes without approval
    (ApplyMode; None in logs of version 0.1), and `unasked` are the classes of changes so applied. `persona` is
    the accepted part of the T layer; `standing` is the text that the agent behind the task adds to every prompt:
    segment name → text. `tuned` are the values that the user accepted for tasks of one type: slug of the intent →
    hyperparameters by name; they apply from the TaskSpec on. `brain` and `tool` are the models; `without` are the
    disabled heuristics; `asked_by` is the program that sent the request (None: the command line or the
    library)."""

    artoo: str
    hyperparameters: Numbers = Field(default_factory=Numbers)
    steps: int = 8
    seconds: float = 240.0
    most_subtasks: int = MOST_SUBTASKS
    strict_roles: bool = False
    ask_for_moves: bool = True
    second_look: str = "auto"
    memory: bool = True
    max_calls: int | None = None
    max_tokens: int | None = None
    max_money: float | None = None
    allow: tuple[str, ...] = ()
    apply: ApplyMode | None = None
    unasked: tuple[ChangeClass, ...] | None = None
    persona: str = ""
    standing: dict[str, str] = Field(default_factory=dict[str, str])
    tuned: dict[str, Numbers] = Field(default_factory=dict[str, Numbers])
    brain: ModelKnown = Field(default_factory=ModelKnown)
    tool: ModelKnown = Field(default_factory=ModelKnown)
    without: tuple[str, ...] = ()
    asked_by: AskedBy | None = None
    effort: Effort | None = None
    fixed: tuple[Literal["seconds", "calls", "tokens"], ...] = ()
    plan: bool = False

    def for_type(self, slug: str) -> TaskOpened:
        """Return this record with the tuned hyperparameters of a task type."""
        own = self.tuned.get(slug)
        return self if own is None else self.model_copy(update={"hyperparameters": {**self.hyperparameters, **own}})


class Source(StrEnum):
    """The sources that a role may read besides the stream."""

    TOOLS = "tools"
    SURROUNDINGS = "surroundings"
    FILE = "file"
    COMMAND = "command"
    TRIAL = "trial"
    DIFFERENCE = "difference"
    JOIN = "join"  # in logs of earlier versions, whose subtasks had separate workspaces
    NEWS = "news"
    MESSAGES = "messages"
    ALTERNATIVES = "alternatives"
    TOOL_PAIRS = "tool_pairs"
    CALIBRATION = "calibration"
    POTENTIALS = "potentials"
    TAUGHT = "taught"
    REQUESTS = "requests"


class Observed(Contract):
    """A record by a role of something that it read outside the stream.

    `question` is the subject (a path, a command, an intent), `answer` is the result as plain JSON; `error` is the
    reason if there is no result."""

    source: Source
    question: str = ""
    answer: JsonValue = None
    error: str | None = None


class TaskResumed(Contract):
    """A record that the task was resumed here, in another process. user → no recipient.

    `after` is the last earlier message that remains valid. `dropped` are the earlier messages that no longer
    count: the interruption or failure and its consequences. `artoo` is the version that resumed the task,
    `asked_by` the program that requested it."""

    after: str
    dropped: tuple[str, ...] = ()
    artoo: str = ""
    asked_by: AskedBy | None = None
