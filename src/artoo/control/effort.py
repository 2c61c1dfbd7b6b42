"""The budgets of `--effort` quick, normal and long, in seconds, model calls and tokens.

Reference: SPEC section 3.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class EffortBudget:
    """The budget of a task for one effort: seconds of wall time, number of calls of models, and numbers of prompt
    and completion tokens."""

    seconds: float
    calls: int
    tokens: int


BUDGETS = MappingProxyType(
    {
        "quick": EffortBudget(300.0, 40, 400_000),
        "normal": EffortBudget(1_800.0, 200, 4_000_000),
        "long": EffortBudget(14_400.0, 1_000, 40_000_000),
    }
)
