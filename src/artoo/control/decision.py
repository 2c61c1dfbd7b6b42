"""The decision cascade from loss, gradient and cost to the next macro-state, such as accept or break symmetry.

Reference: SPEC section 4; paper, section 5.3, Appendix A.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from artoo.control.hyperparameters import Hyperparameters
from artoo.control.loss import LossTerms


class MacroState(Enum):
    """The next move of the solver. The first three members end a task."""

    ACCEPT = "accept"
    SUCCESS = "success"
    ABANDON = "abandon"
    BREAK_SYMMETRY = "break_symmetry"
    CHANGE_APPROACH = "change_approach"
    CHANGE_PATH = "change_path"
    REFINE = "refine"

    @property
    def ends(self) -> bool:
        """True for accept, success and abandon."""
        return self in (MacroState.ACCEPT, MacroState.SUCCESS, MacroState.ABANDON)


class Urgency(Enum):
    """The sign of ∇L. It determines how strongly a directive is applied, but not which directive."""

    IMPROVING = "improving"
    STEADY = "steady"
    WORSENING = "worsening"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence that can prevent a success despite a small D: SPEC's three conditions for `success`."""

    matched_subtasks: int = 1
    unmet_task_criteria: int = 0
    contradicted: bool = False

    @property
    def allows_success(self) -> bool:
        """Check whether a subtask matched, no task criterion is unmet, and no evidence contradicts the result."""
        return self.matched_subtasks > 0 and self.unmet_task_criteria == 0 and not self.contradicted


@dataclass(frozen=True, slots=True)
class Decision:
    """A macro-state and its reason. `worsening_rounds` is carried into the next round.

    `cause` names the reason why a task ended: `cost` (Ω ≥ θ), `divergence` (Law 2), `replans` or `exhausted` (no
    other approach is left). It is empty otherwise.
    """

    state: MacroState
    reason: str
    worsening_rounds: int = 0
    cause: str = ""


def urgency(gradient: float, epsilon: float) -> Urgency:
    """Classify the gradient: |∇L| below ε is steady; |∇L| = ε already counts as a signal."""
    if abs(gradient) < epsilon:
        return Urgency.STEADY
    return Urgency.WORSENING if gradient > 0 else Urgency.IMPROVING


def macro_state(
    terms: LossTerms, gradient: float, h: Hyperparameters, evidence: Evidence | None = None
) -> MacroState:
    """Return the macro-state by Ω, D, then |∇L| and P. If `evidence` is None, D alone decides success."""
    if terms.cost >= h.theta:
        return MacroState.ABANDON
    if terms.distance <= h.delta and (evidence is None or evidence.allows_success):
        return MacroState.SUCCESS
    return way_on(terms, gradient, h)


def way_on(terms: LossTerms, gradient: float, h: Hyperparameters) -> MacroState:
    """Return how the work must change in order to continue, by |∇L| and P alone."""
    plateau = abs(gradient) < h.epsilon
    if terms.implausibility > h.rho:
        return MacroState.BREAK_SYMMETRY if plateau else MacroState.CHANGE_APPROACH
    return MacroState.CHANGE_PATH if plateau else MacroState.REFINE


def is_suspicious(terms: LossTerms, gradient: float, h: Hyperparameters) -> bool:
    """True in the paper's cell 6, where the loss falls although the approach is wrong. The Auditor reports it."""
    going_on = terms.cost < h.theta and terms.distance > h.delta
    return going_on and gradient <= -h.epsilon and terms.implausibility > h.rho


def decide(
    terms: LossTerms,
    gradient: float,
    h: Hyperparameters,
    *,
    evidence: Evidence,
    worsening_rounds: int = 0,
    may_replan: bool = True,
) -> Decision:
    """Apply the whole law to a round that was not accepted.

    `worsening_rounds`: consecutive rounds before this one with ∇L > ε. `may_replan` is False if the meta-validator
    recommends to abandon, because the replan budget is spent. The kill switch and the replan budget stop only a
    task that would continue. They never prevent a success.
    """
    worsening = worsening_rounds + 1 if gradient > h.epsilon else 0
    state = macro_state(terms, gradient, h, evidence)
    if state is MacroState.ABANDON:
        return Decision(state, f"Ω {terms.cost:.2f} ≥ θ {h.theta:.2f}", worsening, "cost")
    if state is MacroState.SUCCESS:
        return Decision(state, f"D {terms.distance:.2f} ≤ δ {h.delta:.2f}", worsening)
    if worsening >= h.kill_after:
        return Decision(MacroState.ABANDON, f"worsening for {worsening} rounds (Law 2)", worsening, "divergence")
    if not may_replan:
        return Decision(MacroState.ABANDON, "no replan left", worsening, "replans")
    signal = "plateau" if abs(gradient) < h.epsilon else "signal"
    kind = "logical" if terms.implausibility > h.rho else "environmental"
    return Decision(state, f"{signal}, {kind}", worsening)
