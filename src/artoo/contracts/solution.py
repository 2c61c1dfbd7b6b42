"""Define the medium loop's exchange: R4b → R7 → R2, and the end of every task."""

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
    """The loss: D, P and Omega in [0, 1], and L = α·D + β_eff·P + λ·Ω (paper, section 5.1)."""

    D: float = 0.0
    P: float = 0.0
    Omega: float = 0.0
    L: float = 0.0


class StoppedBy(StrEnum):
    """The reasons for which a task ends before its criteria are met."""

    COST = "cost"  # Ω ≥ θ
    DIVERGENCE = "divergence"  # the Law 2 kill switch
    REPLANS = "replans"
    MISSING_INPUT = "missing_input"  # an executor says that it cannot be done, and that stands
    QUESTION = "question"  # only the person can tell what is meant: the planner asks back
    TIME = "time"
    CALLS = "calls"  # in logs of version 0.1 also tokens
    TOKENS = "tokens"
    MONEY = "money"
    NO_MODEL = "no_model"
    PROMPT_REFUSED = "prompt_refused"  # the model's server refuses what this task sends it, and answers others
    INTERRUPTED = "interrupted"
    REFUSED_BY_USER = "refused_by_user"
    INTERNAL = "internal"

    @property
    def is_infrastructure(self) -> bool:
        """Check whether the ending says nothing of the task: it can go on later."""
        return self in (StoppedBy.NO_MODEL, StoppedBy.INTERRUPTED, StoppedBy.INTERNAL)

    @property
    def teaches(self) -> bool:
        """Return False when nothing can be learnt from the ending (SPEC section 5). That is also an unclear
        request, or a missing file or program, which the user corrects."""
        own = (StoppedBy.QUESTION, StoppedBy.PROMPT_REFUSED, StoppedBy.MISSING_INPUT)
        return not self.is_infrastructure and self not in own


class OutcomeSummary(Contract):
    """Report a round in which everything matched; some criteria may be open. R4b → R7. `shared` as in Joined."""

    task_id: str
    merged_output: str
    summary: str
    outcomes: tuple[SubTaskOutcome, ...] = ()
    task_verdicts: tuple[CriterionVerdict, ...] = ()
    shared: tuple[SharedPath, ...] = ()


class ReplanRequest(Contract):
    """Report a round in which something is unmet, with all outcomes and a merge of what matched. R4b → R7. `shared`
    as in Joined. `not_run` counts the criteria of subtasks that never started: failed in D, absent from P.
    `unjudged`: the merge holds an answer that no validator had judged when the task was stopped.
    """

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
    """R7's macro-states. `init` only ever appears as the previous directive of the first round."""

    INIT = "init"
    ACCEPT = "accept"
    SUCCESS = "success"
    ABANDON = "abandon"
    BREAK_SYMMETRY = "break_symmetry"
    CHANGE_APPROACH = "change_approach"
    CHANGE_PATH = "change_path"
    REFINE = "refine"


class Decided(Contract):
    """Report one decision of the control law, with everything that it was computed from. R7's record.

    `grad_l` is the gradient that decided; the other of the two definitions is next to it. `elapsed_ms` is the
    time that counted when it was measured, unrounded: Ω follows from it. `exhausted`: it ended because another
    approach was demanded and none was left.
    """

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
    """Give the way in which the next round must differ. R7 → R2.

    Blocks are those of all rounds so far; `suggested_alternatives` names none of them.
    `unmet` are the task's criteria that failed. `urgency` is the sign of ∇L, steady below ε.
    """

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
    """Name a criterion that the delivered result does not satisfy, and who answers for it.

    `reason` is as it was said: a model's words, or code's in English. `found` is what code found, typed.
    `impossible`: no work on it has failed; it was said that it cannot be done, and that stands.
    """

    criterion: str
    reason: str = ""
    found: Reason | None = None
    failure_class: FailureClass | None = None
    accountable: Role = Role.PLANNER
    impossible: bool = False


class Money(Contract):
    """Count the cost of priced calls. `unpriced_calls` of a model without a price are not in `amount`.

    `currency` is the operator's label.
    """

    amount: float = Field(default=0.0, ge=0)
    currency: str = ""
    unpriced_calls: int = Field(default=0, ge=0)

    def plus(self, cost: float | None) -> Money:
        """Add one call; None: its cost is unknown."""
        if cost is None:
            return self.model_copy(update={"unpriced_calls": self.unpriced_calls + 1})
        return self.model_copy(update={"amount": self.amount + cost})


class Cost(Contract):
    """Count the use of a task so far. `money` None: no prices are configured. `llm_calls` are requests that a
    server may have charged for: retries of a lost answer and repairs count, refusals do not.
    """

    llm_calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    tool_calls: int = 0
    elapsed_ms: int = 0
    money: Money | None = None


class FinalResult(Contract):
    """Report the end of a task, on every path, from R7 alone.

    `output` is built from tool output; `summary` is the same with signs for what is missing. artoo's own sentences
    are the surfaces': they make them of these fields, in the person's `language` (a BCP 47 primary tag).
    `withheld` lists acts that Law 1 kept back; then the summary begins with [LAW1]. `changes` says what became of
    the task's difference; one that is pending is no failure of the task. `stopped_by` and `detail` say why a task
    was abandoned; `next_moves` are a model's suggestions. `assurance` is that of the weakest criterion, `open` are
    the criteria that nothing decided, `amended` the checks that were replaced. `facts` is what code knows,
    whatever the words say. `value` is the output in the form that was asked for (UserRequest.returns); None where
    the caller did not ask, or where none could be made, which `facts` says then.
    """

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
    """Stop running work now; R4b answers at once with a merge of what matched. R7 → everyone."""

    stopped_by: StoppedBy
    reason: str


class RoleFailure(Contract):
    """Report that a role could not do its part. Any role → R7, which ends the task honestly."""

    role: Role
    stopped_by: StoppedBy
    reason: str
    detail: str = ""
