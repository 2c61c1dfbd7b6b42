"""The decision cascade from loss, gradient and cost to the next macro-state, such as accept or break symmetry.

Reference: SPEC section 4; paper, section 5.3, Appendix A.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from artoo.control.hyperparameters import Hyperparameters
from artoo.control.loss import LossTerms


class MacroState(Enum):
    """The solver's decision about what follows a round. The first three members end a task."""

    ACCEPT = "accept"
    SUCCESS = "success"
    ABANDON = "abandon"
    BREAK_SYMMETRY = "break_symmetry"
    CHANGE_APPROACH = "change_approach"
    CHANGE_PATH = "change_path"
    REFINE = "refine"

    @property
    def ends(self) -> bool:
        """Return True for accept, success and abandon."""
        return self in (MacroState.ACCEPT, MacroState.SUCCESS, MacroState.ABANDON)


class Urgency(Enum):
    """The sign of the gradient ∇L. It determines how strongly a directive is applied, but not which directive."""

    IMPROVING = "improving"
    STEADY = "steady"
    WORSENING = "worsening"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence that can prevent a success although the distance D is small. These are the three conditions for
    `success` in SPEC section 4."""

    matched_subtasks: int = 1
    unmet_task_criteria: int = 0
    contradicted: bool = False

    @property
    def allows_success(self) -> bool:
        """Return whether a subtask matched, no criterion of the task is unmet, and no evidence contradicts the
        result."""
        return self.matched_subtasks > 0 and self.unmet_task_criteria == 0 and not self.contradicted


@dataclass(frozen=True, slots=True)
class Decision:
    """A macro-state and the reason for it. `worsening_rounds` is used for the decision about the next round.

    `cause` says why a task ended: `cost` (Ω ≥ θ), `divergence` (Law 2), `replans` (no replan is left) or
    `exhausted` (no other approach is left). It is empty otherwise.
    """

    state: MacroState
    reason: str
    worsening_rounds: int = 0
    cause: str = ""


def urgency(gradient: float, epsilon: float) -> Urgency:
    """Classify the gradient ∇L. If |∇L| is below ε, it is steady. If |∇L| equals ε, it is already a signal."""
    if abs(gradient) < epsilon:
        return Urgency.STEADY
    return Urgency.WORSENING if gradient > 0 else Urgency.IMPROVING


def macro_state(
    terms: LossTerms, gradient: float, h: Hyperparameters, evidence: Evidence | None = None
) -> MacroState:
    """Return the macro-state. Ω decides first, then D, then |∇L| and P. If `evidence` is None, D alone decides
    success."""
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
    """Return True in the case of the paper's cell 6, in which the loss falls although the approach is wrong. The
    Auditor reports it."""
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
    """Apply the whole control law to a round that was not accepted.

    `worsening_rounds` is the number of consecutive rounds before this one in which ∇L was above ε. `may_replan` is
    False if the meta-validator recommends to abandon the task, because the budget of replans is spent. The kill
    switch (Law 2) and the budget of replans only stop a task that would continue. They never prevent a success.
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
