"""The budgets of a task's effort, and the gradient that decides."""

from __future__ import annotations

import pytest

from artoo.control.effort import BUDGETS
from artoo.control.hyperparameters import Hyperparameters
from artoo.control.loss import LossTerms, deciding_gradient, gradient_at_equal_cost, gradient_of_the_paper


def test_a_larger_effort_has_more_of_everything() -> None:
    """Seconds, calls and tokens grow from quick to long; quick is the paper's time budget."""
    quick, normal, long = (BUDGETS[name] for name in ("quick", "normal", "long"))
    assert quick.seconds < normal.seconds < long.seconds
    assert quick.calls < normal.calls < long.calls and quick.tokens < normal.tokens < long.tokens
    assert quick.seconds * 1_000 == Hyperparameters().time_budget_ms


@pytest.mark.parametrize("gradient", ["equal_cost", "paper"])
def test_the_configured_gradient_decides(gradient: str) -> None:
    """At equal cost, or as the paper has it; they differ when the cost has grown."""
    h = Hyperparameters(gradient=gradient)  # pyright: ignore[reportArgumentType]
    before, now = LossTerms(0.5, 0.5, 0.1), LossTerms(0.5, 0.5, 0.4)
    wanted = gradient_of_the_paper if gradient == "paper" else gradient_at_equal_cost
    assert deciding_gradient(now, before, h) == wanted(now, before, h)
    assert gradient_of_the_paper(now, before, h) != gradient_at_equal_cost(now, before, h)
