"""The budgets that the user fixed for a task, and those that follow from its effort.

The effort of the plan determines each budget that neither the user nor the configuration has fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from artoo.contracts.plan import Effort
from artoo.contracts.steering import EffortChosen
from artoo.control.effort import BUDGETS

BudgetName = Literal["seconds", "calls", "tokens"]


@dataclass(frozen=True, slots=True)
class Allowance:
    """The budgets that the user fixed. A budget of None is determined by the effort.

    `effort` is the user's choice, or `quick` for a small model. If it is None, the plan chooses the effort.
    """

    effort: Effort | None = None
    seconds: float | None = None
    calls: int | None = None
    tokens: int | None = None

    def of(self, planned: Effort) -> EffortChosen:
        """Return the budgets of a task whose plan has the effort `planned`."""
        effort = self.effort or planned
        usual = BUDGETS[effort]
        return EffortChosen(
            effort=effort,
            seconds=usual.seconds if self.seconds is None else self.seconds,
            calls=usual.calls if self.calls is None else self.calls,
            tokens=usual.tokens if self.tokens is None else self.tokens,
        )

    @property
    def first(self) -> EffortChosen:
        """Return the budgets that apply until there is a plan."""
        return self.of("quick")

    @property
    def fixed(self) -> tuple[BudgetName, ...]:
        """Return the names of the budgets that the user or the configuration fixed."""
        given = {"seconds": self.seconds, "calls": self.calls, "tokens": self.tokens}
        names: tuple[BudgetName, ...] = ("seconds", "calls", "tokens")
        return tuple(name for name in names if given[name] is not None)
