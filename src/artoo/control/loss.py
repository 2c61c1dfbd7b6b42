"""The formulas of the loss L, its terms D, P and Ω, and the gradient.

Reference: SPEC section 4; paper, sections 5.1 and 5.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from artoo.control.hyperparameters import Hyperparameters


@dataclass(frozen=True, slots=True)
class CriterionGap:
    """One criterion as input of the loss: whether it finally failed, and in how many attempts (k of N)."""

    failed: bool
    verifiable: bool = False
    failed_attempts: int = 1
    attempts: int = 1

    @property
    def weight(self) -> float:
        """Return failᵢ in [0, 1]. It is 0 if the criterion passed, 1 if it failed and is verifiable, and otherwise
        k/N."""
        if not self.failed:
            return 0.0
        if self.verifiable:
            return 1.0
        return min(1.0, self.failed_attempts / max(1, self.attempts))


@dataclass(frozen=True, slots=True)
class LossTerms:
    """The terms D, P and Ω, each in [0, 1]."""

    distance: float
    implausibility: float
    cost: float


def distance(gaps: Iterable[CriterionGap]) -> float:
    """Return the distance D = Σ failᵢ / number of criteria, in [0, 1]. Without criteria it is 0."""
    weights = [gap.weight for gap in gaps]
    return sum(weights) / len(weights) if weights else 0.0


def implausibility(logical: int, environmental: int) -> float:
    """Return the implausibility P = logical / (logical + environmental), in [0, 1]. It is 0 if nothing failed."""
    total = logical + environmental
    return logical / total if total else 0.0


def resource_cost(replans: int, elapsed_ms: float, h: Hyperparameters) -> float:
    """Return the resource cost Ω = w₁·min(1, replans/max_replans) + w₂·min(1, elapsed/budget), in [0, w₁ + w₂].

    If max_replans is 0, the share of replans is 1 from the first replan on, because every replan exceeds the
    maximum.
    """
    replan_share = min(1.0, replans / h.max_replans) if h.max_replans else float(replans > 0)
    time_share = min(1.0, max(0.0, elapsed_ms) / h.time_budget_ms)
    return h.w1 * replan_share + h.w2 * time_share


def loss(terms: LossTerms, h: Hyperparameters) -> float:
    """Return the loss L = α·D + β·(1 − Ω)·P + λ·Ω."""
    beta_effective = h.beta * (1.0 - terms.cost)
    return h.alpha * terms.distance + beta_effective * terms.implausibility + h.lambda_ * terms.cost


def gradient_at_equal_cost(current: LossTerms, previous: LossTerms | None, h: Hyperparameters) -> float:
    """Return the gradient at equal cost, L(D_t, P_t, Ω_t) − L(D_{t−1}, P_{t−1}, Ω_t). It is 0 in the first round.

    Both terms use the present cost. Otherwise the cost of a replan alone would look like a worse result.
    """
    if previous is None:
        return 0.0
    before = LossTerms(previous.distance, previous.implausibility, current.cost)
    return loss(current, h) - loss(before, h)


def deciding_gradient(current: LossTerms, previous: LossTerms | None, h: Hyperparameters) -> float:
    """Return that gradient which the hyperparameters select for decisions."""
    chosen = gradient_of_the_paper if h.gradient == "paper" else gradient_at_equal_cost
    return chosen(current, previous, h)


def gradient_of_the_paper(current: LossTerms, previous: LossTerms | None, h: Hyperparameters) -> float:
    """Return the gradient of the paper, L_t − L_{t−1}. It is 0 in the first round."""
    return 0.0 if previous is None else loss(current, h) - loss(previous, h)
