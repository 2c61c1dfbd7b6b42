"""Define the input of a running task: messages of the user, samples in flight, R7's directives (SPEC 3.5)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.execution import CriterionVerdict, ToolCall
from artoo.contracts.plan import Plan
from artoo.contracts.solution import Directive, Loss


class UserMessage(Contract):
    """Carry a message of the user to a running task. user → R3, R2, dispatcher, R7.

    It reaches each executor before its next turn, R2 before its next plan, and subtasks that start later in their
    first message. `hold`: interrupt the turn under way and wait for the next message (Ctrl-C once); its text is
    empty then. `by` names the surface (`terminal`, `web`, `acp`, `mcp`, `library`).
    """

    text: str = ""
    hold: bool = False
    by: str = ""


class QuestionAsked(Contract):
    """Ask an executor asks the user something that only they can tell (`ask_person`). R3 → user, R7.

    R7's clock stands still until the answer.
    """

    subtask_id: str
    question: str


class QuestionAnswered(Contract):
    """Carry the user's answer. user → R3, R7. Empty: no user answered in time."""

    subtask_id: str
    answer: str


class PlanProposed(Contract):
    """Propose a plan that waits for approval (`--plan`).

    R2 → user, R7. R7's clock stands still until the answer.
    """

    plan: Plan


class PlanAnswered(Contract):
    """Carry the user's answer to a proposed plan. user → R2, R7.

    `change`: `remarks` say what must be different, and R2 plans once more. `reject` ends the task.
    """

    decision: Literal["approve", "change", "reject"]
    remarks: str = ""


class SampleDue(Contract):
    """Report that a long attempt has come to a sampling point: every 8 turns or 120 s. R3 → R4a.

    `turn` counts the turns of the attempt. `calls` are those since the last sample.
    """

    subtask_id: str
    attempt: int = Field(ge=1)
    turn: int = Field(ge=1)
    calls: tuple[ToolCall, ...] = ()


class Sampled(Contract):
    """Report the criteria that code can check, checked in a throw-away layer while the attempt goes on. R4a → R7.

    `logical` and `environmental` count the failure classes of the calls since the last sample.
    """

    subtask_id: str
    attempt: int = Field(ge=1)
    turn: int = Field(ge=1)
    verdicts: tuple[CriterionVerdict, ...] = ()
    logical: int = 0
    environmental: int = 0


class SampleMeasured(Contract):
    """Report the loss at one sample, and what R7 does about it. R7's record.

    `directive` None: the attempt goes on undisturbed. `elapsed_ms` is what R7's stopwatch showed.
    """

    subtask_id: str
    turn: int
    loss: Loss
    grad_l: float = 0.0
    directive: Directive | None = None
    ends_attempt: bool = False
    reason: str = ""
    elapsed_ms: float | None = None


class CourseDirective(Contract):
    """Carry a directive of R7 to an executor in the middle of its attempt. R7 → R3.

    `text` is what the model reads. `ends_attempt`: two worsening samples after a directive (Law 2): the executor
    stops and hands over what it has.
    """

    subtask_id: str
    turn: int
    directive: Directive
    text: str
    ends_attempt: bool = False


class Heard(Contract):
    """Report that a message that reached an executor between two of its turns. Part of its Observed (source
    `messages`).

    `message`: the text of a UserMessage, whose envelope is `id`. `directive`: the text of a CourseDirective; `end`:
    one that ends the attempt. `sample`: a sample of the criteria is due.
    """

    what: Literal["message", "directive", "end", "sample"]
    text: str = ""
    id: str = ""


class EffortChosen(Contract):
    """Report the budgets in force from now on, by the plan's effort or the user's word. R7's record."""

    effort: Literal["quick", "normal", "long"]
    seconds: float
    calls: int
    tokens: int
