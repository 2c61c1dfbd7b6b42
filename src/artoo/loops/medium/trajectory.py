"""The gap over the rounds of one task: what makes R7 a controller and not a replanner (v0.8, principle 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from artoo.contracts.solution import Decided, Directive, Loss
from artoo.control.decision import Decision, MacroState, Urgency, decide, is_suspicious, urgency
from artoo.control.hyperparameters import Hyperparameters
from artoo.control.loss import (
    LossTerms,
    deciding_gradient,
    gradient_at_equal_cost,
    gradient_of_the_paper,
    loss,
    resource_cost,
)
from artoo.loops.medium.gaps import Gap

WRONG_WAYS = (Directive.BREAK_SYMMETRY, Directive.CHANGE_APPROACH)
"""Directives after which the approach itself is held to be wrong."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One round's gap with its loss, and both gradients; `gradient` is the one that decides. `elapsed_ms` is the
    time that counted.
    """

    gap: Gap
    terms: LossTerms
    loss: Loss
    equal_cost: float
    paper: float
    gradient: float
    elapsed_ms: float = 0.0


class Trajectory:
    """Pure state: no clock, no bus. `round` counts from 1; `directive` is the one that this round obeys."""

    def __init__(self, hyperparameters: Hyperparameters) -> None:
        self._h = hyperparameters
        self._previous: LossTerms | None = None
        self._worsening = 0
        self._exhausted = 0
        self.round = 1
        self.directive = Directive.INIT

    @property
    def replans(self) -> int:
        """Rounds after the first."""
        return self.round - 1

    @property
    def numbers(self) -> Hyperparameters:
        """The hyperparameters that decide now."""
        return self._h

    def cost(self, elapsed_ms: float, budget_ms: float) -> float:
        """Return Ω, measured against the time budget in force."""
        return resource_cost(self.replans, elapsed_ms, replace(self._h, time_budget_ms=max(1, round(budget_ms))))

    def decide_by(self, hyperparameters: Hyperparameters) -> None:
        """Other numbers from now on: those of the task's type, once that is known."""
        self._h = hyperparameters

    def measure(self, gap: Gap, elapsed_ms: float, budget_ms: float) -> Measurement:
        """The loss of this round. `budget_ms` may be below the hyperparameter's when a deadline caps it."""
        h = self.numbers
        cost = self.cost(elapsed_ms, budget_ms)
        terms = LossTerms(gap.distance, gap.implausibility, cost)
        equal_cost = gradient_at_equal_cost(terms, self._previous, h)
        paper = gradient_of_the_paper(terms, self._previous, h)
        value = Loss(D=terms.distance, P=terms.implausibility, Omega=cost, L=loss(terms, h))
        deciding = deciding_gradient(terms, self._previous, h)
        return Measurement(gap, terms, value, equal_cost, paper, deciding, elapsed_ms)

    def decide(self, measured: Measurement, *, may_replan: bool) -> Decision:
        """The control law's decision for this round; remembers how long it has been getting worse."""
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
        """The decision, or the end where it demands what there is not: for `exhausted_after` rounds in a row.

        `another_left` False: others are forbidden already, and of what failed nothing can be forbidden any more, so
        that another plan could only do the same again.
        """
        demanded = not decision.state.ends and self.blocks_tools(Directive(decision.state.value))
        self._exhausted = self._exhausted + 1 if demanded and not another_left else 0
        if not 0 < self._h.exhausted_after <= self._exhausted:
            return decision
        return replace(decision, state=MacroState.ABANDON, reason="no other approach is left", cause="exhausted")

    def advance(self, measured: Measurement, directive: Directive) -> None:
        """Begins the next round under `directive`."""
        self._previous = measured.terms
        self.directive = directive
        self.round += 1

    def blocks_tools(self, directive: Directive) -> bool:
        """Whether the tools of what failed are forbidden from now on."""
        return directive in WRONG_WAYS

    def blocks_targets(self, directive: Directive) -> bool:
        """Whether what tools failed on for good is forbidden from now on: always, whatever comes next."""
        return True

    def record(self, decision: Decision, measured: Measurement) -> Decided:
        """The decision as it goes on the stream."""
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
        """The sign of ∇L, where that is more than noise."""
        return urgency(measured.gradient, self._h.epsilon)

    def suspicious(self, measured: Measurement) -> bool:
        """The paper's cell 6."""
        return is_suspicious(measured.terms, measured.gradient, self._h)


def delivered(open_criteria: Sequence[str]) -> Decision:
    """Everything matched and no criterion failed: decided before the cascade. Only what is decided is accepted."""
    if open_criteria:
        return Decision(MacroState.SUCCESS, f"nothing failed; open: {'; '.join(open_criteria)}"[:500])
    return Decision(MacroState.ACCEPT, "all criteria met")
