"""Loss, gradient and hyperparameters, with trajectories computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artoo.control.decision import Evidence, MacroState, decide
from artoo.control.hyperparameters import Hyperparameters
from artoo.control.loss import (
    CriterionGap,
    LossTerms,
    distance,
    gradient_at_equal_cost,
    gradient_of_the_paper,
    implausibility,
    loss,
    resource_cost,
)

H = Hyperparameters()
unit = st.floats(0, 1)

# Hand-computed. Each round: (D, P, replans, elapsed_ms) -> (Ω, L, ∇L at equal cost, ∇L of the paper, state).
# Ω = .6·replans/3 + .4·elapsed/300000; L = .6·D + .3·(1−Ω)·P + .4·Ω.
TRAJECTORIES: dict[str, list[tuple[tuple[float, float, int, int], tuple[float, float, float, float, str]]]] = {
    "a wrong approach stays wrong: plateau, logical": [
        ((1.0, 1.0, 0, 0), (0.0, 0.9, 0.0, 0.0, "break_symmetry")),
        ((1.0, 1.0, 1, 0), (0.2, 0.92, 0.0, 0.02, "break_symmetry")),
        ((1.0, 1.0, 2, 0), (0.4, 0.94, 0.0, 0.02, "break_symmetry")),
    ],
    "an environmental failure on a slow model is a plateau, not a worsening": [
        ((1.0, 0.0, 0, 37_500), (0.05, 0.62, 0.0, 0.0, "change_path")),
        ((1.0, 0.0, 1, 75_000), (0.3, 0.72, 0.0, 0.1, "change_path")),
        ((1.0, 0.0, 2, 112_500), (0.55, 0.82, 0.0, 0.1, "change_path")),
        ((1.0, 0.0, 3, 150_000), (0.8, 0.92, 0.0, 0.1, "abandon")),
    ],
    "half of it is mended: signal, environmental": [
        ((1.0, 0.0, 0, 0), (0.0, 0.6, 0.0, 0.0, "change_path")),
        ((0.5, 0.0, 1, 0), (0.2, 0.38, -0.3, -0.22, "refine")),
        ((0.25, 0.0, 2, 0), (0.4, 0.31, -0.15, -0.07, "success")),
    ],
    "near at once": [((0.3, 1.0, 0, 0), (0.0, 0.48, 0.0, 0.0, "success"))],
    "improving with a wrong approach (cell 6)": [
        ((1.0, 1.0, 0, 0), (0.0, 0.9, 0.0, 0.0, "break_symmetry")),
        ((0.5, 1.0, 1, 0), (0.2, 0.62, -0.3, -0.28, "change_approach")),
    ],
    "twice worse: the kill switch": [
        ((0.4, 0.0, 0, 0), (0.0, 0.24, 0.0, 0.0, "change_path")),
        ((0.6, 0.0, 1, 0), (0.2, 0.44, 0.12, 0.2, "refine")),
        ((0.8, 0.0, 2, 0), (0.4, 0.64, 0.12, 0.2, "abandon")),
    ],
    "worse, better, worse: no kill": [
        ((0.4, 0.0, 0, 0), (0.0, 0.24, 0.0, 0.0, "change_path")),
        ((0.8, 0.0, 1, 0), (0.2, 0.56, 0.24, 0.32, "refine")),
        ((0.5, 0.0, 2, 0), (0.4, 0.46, -0.18, -0.1, "refine")),
    ],
    "from the environment to the approach": [
        ((1.0, 0.0, 0, 0), (0.0, 0.6, 0.0, 0.0, "change_path")),
        ((1.0, 1.0, 1, 0), (0.2, 0.92, 0.24, 0.32, "change_approach")),
    ],
    "from the approach to the environment": [
        ((1.0, 1.0, 0, 0), (0.0, 0.9, 0.0, 0.0, "break_symmetry")),
        ((1.0, 0.0, 1, 0), (0.2, 0.68, -0.24, -0.22, "refine")),
    ],
    "a tie of classes is environmental": [((1.0, 0.5, 0, 0), (0.0, 0.75, 0.0, 0.0, "change_path"))],
    "time alone can end it": [
        ((0.5, 0.0, 2, 0), (0.4, 0.46, 0.0, 0.0, "change_path")),
        ((0.5, 0.0, 2, 300_000), (0.8, 0.62, 0.0, 0.16, "abandon")),
    ],
    "time counts once only": [((0.5, 0.0, 0, 3_000_000), (0.4, 0.46, 0.0, 0.0, "change_path"))],
    "a refused plan, then a good one that is near": [
        ((1.0, 1.0, 0, 15_000), (0.02, 0.902, 0.0, 0.0, "break_symmetry")),
        ((0.2, 0.0, 1, 30_000), (0.24, 0.216, -0.708, -0.686, "success")),
    ],
    "P fades as the budget goes": [
        ((0.5, 1.0, 0, 0), (0.0, 0.6, 0.0, 0.0, "break_symmetry")),
        ((0.5, 1.0, 2, 150_000), (0.6, 0.66, 0.0, 0.06, "break_symmetry")),
    ],
}


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_trajectory(name: str) -> None:
    """The hand-computed Ω, L, both gradients and the decision of every round."""
    previous: LossTerms | None = None
    worsening = 0
    for (d, p, replans, elapsed), expected in TRAJECTORIES[name]:
        omega, value, equal_cost, paper, state = expected
        terms = LossTerms(d, p, resource_cost(replans, elapsed, H))
        gradient = gradient_at_equal_cost(terms, previous, H)
        assert terms.cost == pytest.approx(omega)
        assert loss(terms, H) == pytest.approx(value)
        assert gradient == pytest.approx(equal_cost, abs=1e-12)
        assert gradient_of_the_paper(terms, previous, H) == pytest.approx(paper, abs=1e-12)
        decision = decide(terms, gradient, H, evidence=Evidence(), worsening_rounds=worsening)
        assert decision.state is MacroState(state)
        previous, worsening = terms, decision.worsening_rounds


def test_at_least_twelve_trajectories() -> None:
    """The table above holds what the project promises."""
    assert len(TRAJECTORIES) >= 12


def test_failing_weights() -> None:
    """failᵢ: 0 when passed, 1 when verifiable, k/N when plausible."""
    assert CriterionGap(failed=False, verifiable=True).weight == 0
    assert CriterionGap(failed=True, verifiable=True, failed_attempts=1, attempts=3).weight == 1
    assert CriterionGap(failed=True, failed_attempts=1, attempts=3).weight == pytest.approx(1 / 3)
    assert CriterionGap(failed=True, failed_attempts=5, attempts=0).weight == 1


def test_distance_is_the_mean_weight() -> None:
    """D averages over all criteria, and is 0 for none."""
    gaps = [CriterionGap(False), CriterionGap(True, verifiable=True), CriterionGap(True, False, 1, 2)]
    assert distance(gaps) == pytest.approx(0.5)
    assert distance([]) == 0


def test_implausibility_is_the_logical_share() -> None:
    """P is logical over all failures, and 0 when nothing failed."""
    assert implausibility(0, 0) == 0
    assert implausibility(1, 3) == pytest.approx(0.25)


def test_cost_without_replans_allowed() -> None:
    """With max_replans 0 the first replan fills its share; before it, it costs nothing."""
    none = Hyperparameters(max_replans=0)
    assert resource_cost(0, 0, none) == 0
    assert resource_cost(1, 0, none) == pytest.approx(0.6)


@given(unit, unit, unit)
def test_loss_is_bounded(d: float, p: float, omega: float) -> None:
    """With the default weights L stays in [0, 1]: L ≤ α + β·(1 − Ω) + λ·Ω ≤ 1."""
    assert -1e-9 <= loss(LossTerms(d, p, omega), H) <= 1.0 + 1e-9


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 3), st.integers(1, 3)), max_size=20))
def test_distance_in_unit_interval(raw: list[tuple[bool, bool, int, int]]) -> None:
    """D never leaves [0, 1]."""
    assert 0 <= distance(CriterionGap(*each) for each in raw) <= 1


@given(unit, unit, unit, unit)
def test_equal_cost_gradient_ignores_cost(d: float, p: float, before: float, now: float) -> None:
    """An unchanged result has ∇L = 0 at equal cost, however much was spent meanwhile."""
    assert gradient_at_equal_cost(LossTerms(d, p, now), LossTerms(d, p, before), H) == 0


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"alpha": 1.5}, "alpha"),
        ({"lambda_": -0.1}, "lambda"),
        ({"w1": 0.7}, r"w1 \+ w2"),
        ({"time_budget_ms": 0}, "time_budget_ms"),
        ({"max_retries": -1}, "max_retries"),
        ({"kill_after": 0}, "kill_after"),
    ],
)
def test_hyperparameters_out_of_range(values: dict[str, float], named: str) -> None:
    """A value out of its range is refused by name."""
    with pytest.raises(ValueError, match=named):
        Hyperparameters(**values)  # type: ignore[arg-type]
