"""Make a task's log whole: everything that its roles learnt from outside the stream, and where it was resumed.

With these records a log can be replayed without a model, a tool or a store, and continued after a crash.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from artoo.contracts.base import Contract
from artoo.contracts.plan import Effort
from artoo.contracts.settling import ApplyMode, ChangeClass


class ModelKnown(Contract):
    """Record the facts known of a tier's model when the task began (`ports.model.Known`)."""

    small: bool = False
    window: int = 32_768
    images: bool = False


class AskedBy(Contract):
    """Record the program that sent the request: its protocol (`mcp`, `acp`, `a2a`), and what it calls itself.

    Name and version are its own claims: they are not checked.
    """

    protocol: str
    client: str = ""
    version: str = ""

    @property
    def label(self) -> str:
        """Return the label in one piece, for records."""
        return " ".join(part for part in (self.protocol, self.client, self.version) if part)


Numbers = dict[str, float | int | str]
"""Hyperparameters by name."""


class TaskOpened(Contract):
    """Record the way a task is run: what its roles were built with. The first message of every task; user → no one.

    `artoo` is the version that ran it. `hyperparameters` are those of artoo.control, by name. `seconds` of an
    attempt, `steps` in it: logs of version 0.1. `max_calls`, `max_tokens`, `max_money` and the time budget hold
    until EffortChosen; None: no limit. `fixed` names the budgets that no effort changes, `effort` is the user's
    choice (None: the plan's). `plan`: the user approves each plan before it runs. `allow` are
    the permissions that were given for this task alone, `apply` what of it takes effect unasked (ApplyMode; None in
    logs of version 0.1), `unasked` the classes that may do so. `persona` is the accepted part of the
    T layer, `standing` the text in every prompt because of the agent that the task is done for: segment name →
    text. `tuned` is what the person has accepted for tasks of one type: slug of the intent → hyperparameters by
    name; it holds from the TaskSpec on. `brain`, `tool` are the models; `without` the heuristics that were switched
    off; `asked_by` the program that asked, None: the command line or the library.
    """

    artoo: str
    hyperparameters: Numbers = Field(default_factory=Numbers)
    steps: int = 8
    seconds: float = 240.0
    most_subtasks: int = 8
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
        """Return the numbers for a task of this type, with its own among the hyperparameters."""
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
    JOIN = "join"  # in logs of earlier versions, whose subtasks worked apart
    NEWS = "news"
    MESSAGES = "messages"
    ALTERNATIVES = "alternatives"
    TOOL_PAIRS = "tool_pairs"
    CALIBRATION = "calibration"
    POTENTIALS = "potentials"
    TAUGHT = "taught"
    REQUESTS = "requests"


class Observed(Contract):
    """Report that a role looked at something outside the stream, and this is what it saw. The role's own record.

    `question` says what it asked about (a path, a command, an intent), `answer` is what it got, as plain JSON;
    `error` that it got nothing, and why.
    """

    source: Source
    question: str = ""
    answer: JsonValue = None
    error: str | None = None


class TaskResumed(Contract):
    """Report that the task goes on here, in another process. user → no one.

    `after` is the last message before this one that stands. `dropped` are the messages before it that do not: the
    interruption or failure and what followed from it. `artoo` is the version that goes on, `asked_by` the program
    that asked for it.
    """

    after: str
    dropped: tuple[str, ...] = ()
    artoo: str = ""
    asked_by: AskedBy | None = None
