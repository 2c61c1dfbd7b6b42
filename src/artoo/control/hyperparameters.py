"""The defaults of the control law's weights and thresholds, such as replans, retries and worse rounds.

Reference: SPEC section 4; paper, Appendix B.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# The maximum of w₁ + w₂, which is 1 plus a tolerance for rounding.
MOST_COST = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """The weights and thresholds of the control law. The defaults are those of v0.8.

    alpha, beta, lambda_: weights of D, P and Ω in the loss.
    w1, w2: shares of replans and time in Ω; together at most 1, so that Ω stays in [0, 1].
    epsilon: |∇L| below this is a plateau. delta: D at or below this can be a success.
    rho: P above this is a wrong approach. theta: Ω at or above this ends the task.
    time_budget_ms: milliseconds. max_replans, max_retries: counts (retries 2 = 3 attempts).
    kill_after: consecutive worsening rounds that end the task (Law 2).
    exhausted_after: consecutive rounds that demand another approach although none is left, and then end the task.
    0, as in the paper, means that they do not end it.
    gradient: which gradient decides, `equal_cost` (SPEC's) or `paper` (L_t − L_{t−1}).
    """

    alpha: float = 0.6
    beta: float = 0.3
    lambda_: float = 0.4
    w1: float = 0.6
    w2: float = 0.4
    epsilon: float = 0.1
    delta: float = 0.3
    rho: float = 0.5
    theta: float = 0.8
    time_budget_ms: int = 300_000
    max_replans: int = 3
    max_retries: int = 2
    kill_after: int = 2
    exhausted_after: int = 0
    gradient: Literal["equal_cost", "paper"] = "equal_cost"

    def __post_init__(self) -> None:
        """Raise ValueError naming the first value that is out of its range."""
        for name in ("alpha", "beta", "lambda_", "w1", "w2", "epsilon", "delta", "rho", "theta"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name.rstrip('_')} must be between 0 and 1, not {value}")
        if self.w1 + self.w2 > MOST_COST:
            raise ValueError(f"w1 + w2 must be at most 1, or Ω leaves [0, 1]; they are {self.w1} and {self.w2}")
        if self.time_budget_ms <= 0:
            raise ValueError(f"time_budget_ms must be positive, not {self.time_budget_ms}")
        for name in ("max_replans", "max_retries", "exhausted_after"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, not {getattr(self, name)}")
        if self.kill_after < 1:
            raise ValueError(f"kill_after must be at least 1, not {self.kill_after}")
