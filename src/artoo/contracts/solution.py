"""Messages of the medium loop, with loss, directives, reasons to stop, cost, and the result of a task.

The route is R4b → R7 → R2.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Assurance, CheckAmended
from artoo.contracts.execution import CriterionVerdict, SubTaskOutcome
from artoo.contracts.failure import FailureClass
from artoo.contracts.findings import Reason, ResultFact
from artoo.contracts.plan import SharedPath
from artoo.contracts.roles import Role
from artoo.contracts.settling import Settled


class Loss(Contract):
    """The loss. D, P and Omega are in [0, 1], and L = α·D + β_eff·P + λ·Ω (paper, section 5.1)."""

    D: float = 0.0
    P: float = 0.0
    Omega: float = 0.0
    L: float = 0.0


class StoppedBy(StrEnum):
    """The reasons why a task ends before its criteria are met."""

    COST = "cost"  # Ω ≥ θ
    DIVERGENCE = "divergence"  # the kill switch of Law 2
    REPLANS = "replans"
    MISSING_INPUT = "missing_input"  # an executor claimed that the work cannot be done, and this was not refuted
    QUESTION = "question"  # the planner asks the user, because the request is not clear
    TIME = "time"
    CALLS = "calls"  # in logs of version 0.1 also for tokens
    TOKENS = "tokens"
    MONEY = "money"
    NO_MODEL = "no_model"
    PROMPT_REFUSED = "prompt_refused"  # the server of the model refuses the prompts of this task but answers others
    INTERRUPTED = "interrupted"
    REFUSED_BY_USER = "refused_by_user"
    INTERNAL = "internal"

    @property
    def is_infrastructure(self) -> bool:
        """Return whether the task ended for reasons outside of the task, so that it can be resumed later."""
        return self in (StoppedBy.NO_MODEL, StoppedBy.INTERRUPTED, StoppedBy.INTERNAL)

    @property
    def teaches(self) -> bool:
        """Return False if nothing can be learnt from the ending (SPEC section 5). This is so after a failure of the
        infrastructure, an unclear or refused request, or a missing input that the user must supply."""
        own = (StoppedBy.QUESTION, StoppedBy.PROMPT_REFUSED, StoppedBy.MISSING_INPUT)
        return not self.is_infrastructure and self not in own


class OutcomeSummary(Contract):
    """The summary of a round in which all subtasks matched. Some criteria may be open. R4b → R7. `shared` has the
    same meaning as in Joined."""

    task_id: str
    merged_output: str
    summary: str
    outcomes: tuple[SubTaskOutcome, ...] = ()
    task_verdicts: tuple[CriterionVerdict, ...] = ()
    shared: tuple[SharedPath, ...] = ()


class ReplanRequest(Contract):
    """The summary of a round with unmet criteria. It has all outcomes, and a merge of the matched ones. R4b → R7.
    `shared` has the same meaning as in Joined. `not_run` is the number of criteria of subtasks that never started.
    They count as failed in D, and do not count in P. `unjudged`: true if the merge contains an answer that no
    validator had judged when the task was stopped."""

    task_id: str
    outcomes: tuple[SubTaskOutcome, ...] = ()
    task_verdicts: tuple[CriterionVerdict, ...] = ()
    not_run: int = Field(default=0, ge=0)
    corrections: int = Field(default=0, ge=0)
    elapsed_ms: int = Field(default=0, ge=0)
    recommendation: Literal["replan", "abandon"] = "replan"
    stopped_by: StoppedBy | None = None
    merged_output: str = ""
    gap_summary: str = ""
    shared: tuple[SharedPath, ...] = ()
    unjudged: bool = False


class Directive(StrEnum):
    """The macro-states of R7 (solver). `init` occurs only as the previous directive of the first round."""

    INIT = "init"
    ACCEPT = "accept"
    SUCCESS = "success"
    ABANDON = "abandon"
    BREAK_SYMMETRY = "break_symmetry"
    CHANGE_APPROACH = "change_approach"
    CHANGE_PATH = "change_path"
    REFINE = "refine"


class Decided(Contract):
    """A record by R7 (solver) of one decision of the control law, with all values from which it was computed.

    `grad_l` is the gradient by which it was decided. It equals `grad_equal_cost` or `grad_paper`. `elapsed_ms` is
    the measured time, not rounded. Ω is computed from it. `exhausted`: true if the task ended because another
    approach was demanded and none was left."""

    round: int
    directive: Directive
    loss: Loss
    grad_equal_cost: float
    grad_paper: float
    grad_l: float
    criteria: int
    logical_failures: int
    environmental_failures: int
    worsening_rounds: int = 0
    suspicious: bool = False
    reason: str = ""
    elapsed_ms: float | None = None
    exhausted: bool = False


class PlanDirective(Contract):
    """The instruction in which way the next round must be different. R7 → R2.

    The blocked tools and targets are those of all rounds so far. `suggested_alternatives` contains no blocked tool.
    `unmet` are the verdicts on criteria of the whole task that failed. `urgency` is the sign of ∇L. It is `steady`
    if |∇L| is below ε."""

    task_id: str
    round: int = Field(ge=2)
    loss: Loss
    prev_directive: Directive
    directive: Directive
    blocked_tools: tuple[str, ...] = ()
    blocked_targets: tuple[tuple[str, str], ...] = ()
    failed_criterion: str = ""
    failure_class: Literal["logical", "environmental", "mixed"] = "mixed"
    budget_pressure: float = Field(default=0.0, ge=0, le=1)
    grad_l: float = 0.0
    urgency: Literal["improving", "steady", "worsening"] = "steady"
    rationale: str = ""
    suggested_alternatives: tuple[str, ...] = ()
    suspicious: bool = False
    standing: tuple[SubTaskOutcome, ...] = ()
    failed: tuple[SubTaskOutcome, ...] = ()
    unmet: tuple[CriterionVerdict, ...] = ()


class UnmetCriterion(Contract):
    """A criterion that the delivered result does not meet, and the role that is accountable for it.

    `reason` is a text of a model, or an English text of code. `found` is what code has found, as a typed value.
    `impossible`: true if no work on the criterion failed, but a claim that it cannot be met was not refuted."""

    criterion: str
    reason: str = ""
    found: Reason | None = None
    failure_class: FailureClass | None = None
    accountable: Role = Role.PLANNER
    impossible: bool = False


class Money(Contract):
    """The cost of model calls in money. `amount` does not include the `unpriced_calls`, whose models have no price.

    `currency` is a label that the operator chose."""

    amount: float = Field(default=0.0, ge=0)
    currency: str = ""
    unpriced_calls: int = Field(default=0, ge=0)

    def plus(self, cost: float | None) -> Money:
        """Return the sum with the cost of one more call. If that cost is None, the call has no price."""
        if cost is None:
            return self.model_copy(update={"unpriced_calls": self.unpriced_calls + 1})
        return self.model_copy(update={"amount": self.amount + cost})


class Cost(Contract):
    """The amounts that a task has used so far. `money` is None if no prices are configured. `llm_calls` is the
    number of requests for which a server may have charged. Retries of a lost answer and repairs count, but refusals
    do not."""

    llm_calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    tool_calls: int = 0
    elapsed_ms: int = 0
    money: Money | None = None


class FinalResult(Contract):
    """The result of a task. Only R7 (solver) publishes it, and it ends every task.

    `output` is built from the output of tools. `summary` is the same text with marks for what is missing. User
    interfaces write artoo's own sentences from these fields in the user's `language` (a BCP 47 primary tag).
    `withheld` lists operations that Law 1 has prevented. If there are any, the summary begins with [LAW1].
    `changes` says what happened to the task's changes of files. Pending changes do not mean that the task failed.
    `stopped_by` and `detail` say why a task was abandoned. `next_moves` are suggestions of a model. `assurance` is
    that of the weakest criterion. `open` are the criteria that nothing decided, and `amended` the checks that were
    replaced. `facts` are what code has found, independently of the text. `value` is the output in the form that was
    requested (UserRequest.returns). It is None if no form was requested, or if the output could not be converted,
    which `facts` then report."""

    task_id: str
    summary: str
    output: str = ""
    loss: Loss = Field(default_factory=Loss)
    grad_l: float = 0.0
    replans: int = 0
    prev_directive: Directive = Directive.INIT
    directive: Literal[Directive.ACCEPT, Directive.SUCCESS, Directive.ABANDON]
    unmet: tuple[UnmetCriterion, ...] = ()
    done: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    next_moves: tuple[str, ...] = ()
    stopped_by: StoppedBy | None = None
    detail: str = ""
    withheld: tuple[str, ...] = ()
    changes: Settled = Field(default_factory=Settled)
    assurance: Assurance = Assurance.UNVERIFIED
    open: tuple[str, ...] = ()
    amended: tuple[CheckAmended, ...] = ()
    facts: tuple[ResultFact, ...] = ()
    value: JsonValue = None
    cost: Cost = Field(default_factory=Cost)
    language: str = "en"


class Halt(Contract):
    """The order to stop all running work now. R4b answers at once with a merge of the matched outcomes. R7 → R4b,
    executors."""

    stopped_by: StoppedBy
    reason: str


class RoleFailure(Contract):
    """A record that a role failed to do its work. Any role → R7 (solver), which ends the task and reports the
    failure."""

    role: Role
    stopped_by: StoppedBy
    reason: str
    detail: str = ""
