"""Records for replay and resumption, with the configuration of a task and all outside input of its roles.

With these records, a log can be replayed without a model, a tool or a store. A task can also be continued after a
crash.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from artoo.contracts.base import Contract
from artoo.contracts.plan import MOST_SUBTASKS, Effort
from artoo.contracts.settling import ApplyMode, ChangeClass


class ModelKnown(Contract):
    """What was known about the model of a tier when the task began (`ports.model.Known`)."""

    small: bool = False
    window: int = 32_768
    images: bool = False


class AskedBy(Contract):
    """The program that sent the request. It has a protocol (`mcp`, `acp`, `a2a`), a name and a version.

    The name and the version are claims of the program, which are not verified."""

    protocol: str
    client: str = ""
    version: str = ""

    @property
    def label(self) -> str:
        """Return the protocol, the name and the version as one text, for records."""
        return " ".join(part for part in (self.protocol, self.client, self.version) if part)


Numbers = dict[str, float | int | str]
"""Hyperparameters by their names."""


class TaskOpened(Contract):
    """The configuration with which a task runs. It is the first message of every task; user → no recipient.

    `artoo` is the version with which the task was run. `hyperparameters` are those of artoo.control, by their
    names. `seconds` and `steps` of an attempt are only in logs of version 0.1. `max_calls`, `max_tokens`,
    `max_money` and the time budget apply until EffortChosen; None means no limit. `fixed` names the budgets that do
    not depend on the effort. `effort` is the choice of the user (None: the plan decides). `plan`: true if the user
    must approve each plan before it runs. `allow` are the permissions that were given for this task only. `apply`
    is the mode that decides which changes are applied without approval (ApplyMode; None in logs of version 0.1),
    and `unasked` are the classes of these changes. `persona` is the accepted part of the T layer. `standing` maps
    the names of segments to the texts that an agent adds to every prompt, if the task is done for an agent. `tuned`
    are hyperparameters that the user has accepted for tasks of one type, by the slug of the intent. They apply from
    the TaskSpec on. `brain` and `tool` are the models, and `without` are the heuristics that are switched off.
    `asked_by` is the program that sent the request (None: the command line or the library)."""

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
        """Return this record with the hyperparameters for one type of task."""
        own = self.tuned.get(slug)
        return self if own is None else self.model_copy(update={"hyperparameters": {**self.hyperparameters, **own}})


class Source(StrEnum):
    """The sources that a role may read outside of the stream."""

    TOOLS = "tools"
    SURROUNDINGS = "surroundings"
    FILE = "file"
    COMMAND = "command"
    TRIAL = "trial"
    DIFFERENCE = "difference"
    JOIN = "join"  # only in logs of earlier versions, in which each subtask had a workspace of its own
    NEWS = "news"
    MESSAGES = "messages"
    LAST_MESSAGES = "last_messages"
    ALTERNATIVES = "alternatives"
    TOOL_PAIRS = "tool_pairs"
    CALIBRATION = "calibration"
    POTENTIALS = "potentials"
    TAUGHT = "taught"
    REQUESTS = "requests"


class Observed(Contract):
    """A record by a role of something that it has read outside of the stream.

    `question` is what was read (such as a path, a command, or an intent), and `answer` is the result as plain JSON.
    If there is no result, `error` is the reason."""

    source: Source
    question: str = ""
    answer: JsonValue = None
    error: str | None = None


class TaskResumed(Contract):
    """A record that the task was resumed in another process. user → no recipient.

    `after` is the last earlier message that is still valid. `dropped` are the earlier messages that are no longer
    valid, which are the interruption or failure and what followed from it. `artoo` is the version that resumed the
    task, and `asked_by` the program that requested this."""

    after: str
    dropped: tuple[str, ...] = ()
    artoo: str = ""
    asked_by: AskedBy | None = None
