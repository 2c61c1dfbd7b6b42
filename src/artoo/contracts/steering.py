"""Input of a running task, with user messages, questions, plan approval, samples and R7's directives.

Reference: SPEC section 3.5.
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

    Executors receive it before their next turn, and R2 (planner) before its next plan. Later subtasks get it in
    their first message. `hold`: true to interrupt the current turn and wait for the next message (Ctrl-C once). The
    text is empty then. `by` is the name of the user interface (`terminal`, `web`, `acp`, `mcp`, `library`)."""

    text: str = ""
    hold: bool = False
    by: str = ""


class QuestionAsked(Contract):
    """An executor's question to the user (`ask_person`). R3 → user, R7.

    The stopwatch of R7 (solver) is paused until the answer.
    """

    subtask_id: str
    question: str


class QuestionAnswered(Contract):
    """The user's answer to an executor's question. user → R3, R7. It is empty if no user has answered in time."""

    subtask_id: str
    answer: str


class PlanProposed(Contract):
    """A plan that needs the user's approval (`--plan`).

    R2 → user, R7. The stopwatch of R7 (solver) is paused until the answer."""

    plan: Plan


class PlanAnswered(Contract):
    """The user's answer to a proposed plan. user → R2, R7.

    `change`: R2 (planner) plans once more with the changes that `remarks` request. `reject` ends the task."""

    decision: Literal["approve", "change", "reject"]
    remarks: str = ""


class SampleDue(Contract):
    """The request to sample a long attempt. It is made every few turns or minutes (`Sampling`). R3 → R4a.

    `turn` is the number of turns of the attempt so far. `calls` are the calls since the last sample."""

    subtask_id: str
    attempt: int = Field(ge=1)
    turn: int = Field(ge=1)
    calls: tuple[ToolCall, ...] = ()


class Sampled(Contract):
    """The verdicts of checks that were run in a throw-away layer while the attempt continues. R4a → R7.

    `logical` and `environmental` are the numbers of failures of both classes in the calls since the last sample.
    """

    subtask_id: str
    attempt: int = Field(ge=1)
    turn: int = Field(ge=1)
    verdicts: tuple[CriterionVerdict, ...] = ()
    logical: int = 0
    environmental: int = 0


class SampleMeasured(Contract):
    """A record by R7 (solver) of the loss at one sample, and of the directive that followed.

    If `directive` is None, the attempt continues unchanged. `elapsed_ms` is the time on the solver's stopwatch."""

    subtask_id: str
    turn: int
    loss: Loss
    grad_l: float = 0.0
    directive: Directive | None = None
    ends_attempt: bool = False
    reason: str = ""
    elapsed_ms: float | None = None


class CourseDirective(Contract):
    """A directive of R7 (solver) to an executor during its attempt. R7 → R3.

    `text` is what the model reads. `ends_attempt`: true if two samples after a directive were worse (Law 2). The
    executor then stops and delivers the result that it has."""

    subtask_id: str
    turn: int
    directive: Directive
    text: str
    ends_attempt: bool = False


class Heard(Contract):
    """A message that an executor has received between two turns. It is a part of an Observed (with the source
    `messages`).

    `message`: the text of a UserMessage, whose envelope has the id `id`. `directive`: the text of a
    CourseDirective. `end`: a CourseDirective that ends the attempt. `sample`: a sample of the criteria is due."""

    what: Literal["message", "directive", "end", "sample"]
    text: str = ""
    id: str = ""


class EffortChosen(Contract):
    """A record by R7 (solver) of the budgets that apply from now on. The effort of the plan or the user determines
    them."""

    effort: Literal["quick", "normal", "long"]
    seconds: float
    calls: int
    tokens: int
