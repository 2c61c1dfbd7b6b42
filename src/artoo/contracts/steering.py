"""Input of a running task, with user messages, questions, plan approval, samples and R7's directives.

Reference: SPEC 3.5.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.execution import CriterionVerdict, ToolCall
from artoo.contracts.plan import Plan
from artoo.contracts.solution import Directive, Loss


class UserMessage(Contract):
    """A message of the user to a running task. user → R3, R2, dispatcher, R7.

    Executors receive it before their next turn, R2 before its next plan, and later subtasks in their first
    message. `hold`: interrupt the running turn and wait for the next message (Ctrl-C once); the text is then
    empty. `by` names the user interface (`terminal`, `web`, `acp`, `mcp`, `library`)."""

    text: str = ""
    hold: bool = False
    by: str = ""


class QuestionAsked(Contract):
    """An executor's question to the user (`ask_person`). R3 → user, R7.

    R7's stopwatch is paused until the answer.
    """

    subtask_id: str
    question: str


class QuestionAnswered(Contract):
    """The user's answer to an executor's question. user → R3, R7. It is empty if no user answered in time."""

    subtask_id: str
    answer: str


class PlanProposed(Contract):
    """A plan that waits for approval (`--plan`).

    R2 → user, R7. R7's stopwatch is paused until the answer."""

    plan: Plan


class PlanAnswered(Contract):
    """The user's answer to a proposed plan. user → R2, R7.

    `change`: R2 plans once more, as `remarks` demand. `reject` ends the task."""

    decision: Literal["approve", "change", "reject"]
    remarks: str = ""


class SampleDue(Contract):
    """The request for a sample of a long attempt, every few turns or minutes (`Sampling`). R3 → R4a.

    `turn` counts the turns of the attempt. `calls` are the calls since the last sample."""

    subtask_id: str
    attempt: int = Field(ge=1)
    turn: int = Field(ge=1)
    calls: tuple[ToolCall, ...] = ()


class Sampled(Contract):
    """The verdicts of checks by code, run in a throw-away layer while the attempt continues. R4a → R7.

    `logical` and `environmental` count the failure classes of the calls since the last sample.
    """

    subtask_id: str
    attempt: int = Field(ge=1)
    turn: int = Field(ge=1)
    verdicts: tuple[CriterionVerdict, ...] = ()
    logical: int = 0
    environmental: int = 0


class SampleMeasured(Contract):
    """A record by R7 of the loss at one sample, and of its directive.

    If `directive` is None, the attempt continues unchanged. `elapsed_ms` is the time on R7's stopwatch."""

    subtask_id: str
    turn: int
    loss: Loss
    grad_l: float = 0.0
    directive: Directive | None = None
    ends_attempt: bool = False
    reason: str = ""
    elapsed_ms: float | None = None


class CourseDirective(Contract):
    """A directive of R7 to an executor during its attempt. R7 → R3.

    The model reads `text`. `ends_attempt`: two samples worsened after a directive (Law 2), so the executor stops
    and delivers its present result."""

    subtask_id: str
    turn: int
    directive: Directive
    text: str
    ends_attempt: bool = False


class Heard(Contract):
    """A message that an executor received between two turns. It is part of its Observed (source `messages`).

    `message`: the text of a UserMessage with the envelope `id`. `directive`: the text of a CourseDirective.
    `end`: a CourseDirective that ends the attempt. `sample`: a sample of the criteria is due."""

    what: Literal["message", "directive", "end", "sample"]
    text: str = ""
    id: str = ""


class EffortChosen(Contract):
    """A record by R7 of the budgets that apply from now on, chosen by the plan's effort or by the user."""

    effort: Literal["quick", "normal", "long"]
    seconds: float
    calls: int
    tokens: int
