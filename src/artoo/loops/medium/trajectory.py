"""Compute D, P, Ω, the loss and the gradients of a round, and keep their course over rounds.

Reference: SPEC section 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from artoo.contracts.criteria import Mode
from artoo.contracts.execution import CallStatus, CriterionVerdict, SubTaskOutcome, identities_of
from artoo.contracts.failure import FailureClass
from artoo.contracts.solution import Decided, Directive, Loss, ReplanRequest
from artoo.control.decision import Decision, Evidence, MacroState, Urgency, decide, is_suspicious, urgency
from artoo.control.hyperparameters import Hyperparameters
from artoo.control.loss import (
    CriterionGap,
    LossTerms,
    deciding_gradient,
    distance,
    gradient_at_equal_cost,
    gradient_of_the_paper,
    implausibility,
    loss,
    resource_cost,
)


@dataclass(frozen=True, slots=True)
class Gap:
    """The measurements of one round: the distance D, the two counts of failures from which P is computed, and the
    evidence against a success."""

    distance: float
    logical: int
    environmental: int
    criteria: int
    evidence: Evidence

    @property
    def implausibility(self) -> float:
        """Return P in [0, 1]."""
        return implausibility(self.logical, self.environmental)

    @property
    def failure_class(self) -> Literal["logical", "environmental", "mixed"]:
        """Return the class of the majority of failures. Return `mixed` on a tie, because then no majority shows
        that the approach is wrong.
        """
        if self.logical == self.environmental:
            return "mixed"
        return "logical" if self.logical > self.environmental else "environmental"


# The gap of a round in which two drafts of a plan were refused: D = 1, P = 1.
WRONG_APPROACH = Gap(1.0, 1, 0, 1, Evidence(matched_subtasks=0))


def verdicts_of(
    outcomes: Sequence[SubTaskOutcome], task_verdicts: Sequence[CriterionVerdict]
) -> tuple[CriterionVerdict, ...]:
    """Return every verdict of a round: first those of its subtasks, then those of the task."""
    return (*(verdict for outcome in outcomes for verdict in outcome.criteria_verdicts), *task_verdicts)


def measure(request: ReplanRequest) -> Gap:
    """Measure the criteria of subtasks and of the task together. Subtasks that never ran count as failed in D but
    not in P.

    The same holds for failures that only refused calls caused, because they say nothing about the approach. P
    counts every attempt that missed a criterion which is unmet at the end, not only the last attempt.
    """
    verdicts = verdicts_of(request.outcomes, request.task_verdicts)
    gaps = [gap_of(verdict) for verdict in verdicts]
    gaps += [CriterionGap(failed=True, verifiable=True)] * request.not_run
    failed = [verdict for verdict in verdicts if verdict.verdict == "fail"]
    classes = _classes(request)
    bare = sum(outcome.status == "failed" and not outcome.criteria_verdicts for outcome in request.outcomes)
    gaps += [CriterionGap(failed=True, verifiable=True)] * bare
    return Gap(
        distance=distance(gaps) if gaps else 1.0,
        logical=classes[FailureClass.LOGICAL],
        environmental=classes[FailureClass.ENVIRONMENTAL],
        criteria=len(gaps),
        evidence=Evidence(
            matched_subtasks=sum(outcome.status == "matched" for outcome in request.outcomes),
            unmet_task_criteria=sum(verdict.verdict == "fail" for verdict in request.task_verdicts),
            contradicted=any(verdict.contradicted for verdict in failed),
        ),
    )


def _classes(request: ReplanRequest) -> Counter[FailureClass | None]:
    """Count how often the unmet criteria were missed, by failure class. A miss that is counted for a subtask is not
    counted again for the task's verdict on the same criterion.
    """
    calls = (call for outcome in request.outcomes for call in outcome.tool_calls)
    ran = identities_of(call for call in calls if call.status is not CallStatus.REFUSED)
    found = Counter[FailureClass | None]()
    own = {each.criterion for each in verdicts_of(request.outcomes, ()) if each.verdict == "fail"}
    whole = [verdict for verdict in request.task_verdicts if verdict.criterion not in own]
    judged = [(outcome.gap_trajectory, outcome.criteria_verdicts) for outcome in request.outcomes]
    for trajectory, verdicts in (*judged, ((), whole)):
        for verdict in verdicts:
            if verdict.verdict == "fail" and not (verdict.identities and ran.isdisjoint(verdict.identities)):
                earlier = (point for point in trajectory[:-1] if verdict.criterion in point.unmet_criteria)
                found.update((*(point.failure_class for point in earlier), verdict.failure_class))
    return found


def gap_of(verdict: CriterionVerdict) -> CriterionGap:
    """Return the contribution of a verdict to D."""
    return CriterionGap(
        failed=verdict.verdict == "fail",
        verifiable=verdict.mode is Mode.VERIFIABLE,
        failed_attempts=verdict.failed_attempts,
        attempts=verdict.attempts,
    )


# Directives after which the approach itself is considered wrong.
WRONG_WAYS = (Directive.BREAK_SYMMETRY, Directive.CHANGE_APPROACH)


@dataclass(frozen=True, slots=True)
class Measurement:
    """The gap of one round, its loss, and its gradients. `gradient` is the one by which the solver decides.
    `elapsed_ms` is the time that counts against the budget.
    """

    gap: Gap
    terms: LossTerms
    loss: Loss
    equal_cost: float
    paper: float
    gradient: float
    elapsed_ms: float = 0.0


class Trajectory:
    """The rounds of one task so far, as a pure state without clock and bus. `round` counts from 1. The current
    round works under `directive`."""

    def __init__(self, hyperparameters: Hyperparameters) -> None:
        self._h = hyperparameters
        self._previous: LossTerms | None = None
        self._worsening = 0
        self._exhausted = 0
        self.round = 1
        self.directive = Directive.INIT

    @property
    def replans(self) -> int:
        """Count the rounds after the first."""
        return self.round - 1

    @property
    def numbers(self) -> Hyperparameters:
        """Return the hyperparameters that are currently used."""
        return self._h

    def cost(self, elapsed_ms: float, budget_ms: float) -> float:
        """Compute the cost Ω relative to the current time budget."""
        return resource_cost(self.replans, elapsed_ms, replace(self._h, time_budget_ms=max(1, round(budget_ms))))

    def decide_by(self, hyperparameters: Hyperparameters) -> None:
        """Use other hyperparameters from now on, for example those of the task's type when it becomes known."""
        self._h = hyperparameters

    def measure(self, gap: Gap, elapsed_ms: float, budget_ms: float) -> Measurement:
        """Compute the loss of this round. A deadline may make `budget_ms` smaller than the hyperparameter."""
        h = self.numbers
        cost = self.cost(elapsed_ms, budget_ms)
        terms = LossTerms(gap.distance, gap.implausibility, cost)
        equal_cost = gradient_at_equal_cost(terms, self._previous, h)
        paper = gradient_of_the_paper(terms, self._previous, h)
        value = Loss(D=terms.distance, P=terms.implausibility, Omega=cost, L=loss(terms, h))
        deciding = deciding_gradient(terms, self._previous, h)
        return Measurement(gap, terms, value, equal_cost, paper, deciding, elapsed_ms)

    def decide(self, measured: Measurement, *, may_replan: bool) -> Decision:
        """Decide this round by the control law, and count how many rounds in a row were worse than the one
        before."""
        decision = decide(
            measured.terms,
            measured.gradient,
            self._h,
            evidence=measured.gap.evidence,
            worsening_rounds=self._worsening,
            may_replan=may_replan and self.replans < self._h.max_replans,
        )
        self._worsening = decision.worsening_rounds
        return decision

    def unless_exhausted(self, decision: Decision, *, another_left: bool) -> Decision:
        """Return the decision, or Abandon if no other approach is left. No approach is left if `exhausted_after`
        rounds have demanded another one and `another_left` is False.

        `another_left` is False if tools are already forbidden and no further tool can be, because another plan
        would only repeat this one.
        """
        demanded = not decision.state.ends and self.blocks_tools(Directive(decision.state.value))
        self._exhausted = self._exhausted + 1 if demanded and not another_left else 0
        if not 0 < self._h.exhausted_after <= self._exhausted:
            return decision
        return replace(decision, state=MacroState.ABANDON, reason="no other approach is left", cause="exhausted")

    def advance(self, measured: Measurement, directive: Directive) -> None:
        """Start the next round under `directive`."""
        self._previous = measured.terms
        self.directive = directive
        self.round += 1

    def blocks_tools(self, directive: Directive) -> bool:
        """Return whether a directive forbids, from now on, the tools of the calls that failed."""
        return directive in WRONG_WAYS

    def record(self, decision: Decision, measured: Measurement) -> Decided:
        """Return the decision in the form in which it is published."""
        return Decided(
            round=self.round,
            directive=Directive(decision.state.value),
            loss=measured.loss,
            grad_equal_cost=measured.equal_cost,
            grad_paper=measured.paper,
            grad_l=measured.gradient,
            criteria=measured.gap.criteria,
            logical_failures=measured.gap.logical,
            environmental_failures=measured.gap.environmental,
            worsening_rounds=decision.worsening_rounds,
            suspicious=self.suspicious(measured),
            reason=decision.reason,
            elapsed_ms=measured.elapsed_ms,
            exhausted=decision.cause == "exhausted",
        )

    def urgency(self, measured: Measurement) -> Urgency:
        """Return the sign of ∇L as an urgency. A value within the noise counts as a plateau."""
        return urgency(measured.gradient, self._h.epsilon)

    def suspicious(self, measured: Measurement) -> bool:
        """Return whether this round is the paper's cell 6 (nearer by a wrong approach)."""
        return is_suspicious(measured.terms, measured.gradient, self._h)


def delivered(open_criteria: Sequence[str]) -> Decision:
    """Decide a round in which no criterion failed, without the cascade of the control law. The result is accepted
    only if no criterion is open."""
    if open_criteria:
        return Decision(MacroState.SUCCESS, f"nothing failed; open: {'; '.join(open_criteria)}"[:500])
    return Decision(MacroState.ACCEPT, "all criteria met")
