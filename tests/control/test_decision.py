"""The decision table: the paper's 24 cells, their boundaries, and what SPEC section 4 adds to them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artoo.control.decision import Evidence, MacroState, Urgency, decide, is_suspicious, macro_state, urgency
from artoo.control.hyperparameters import Hyperparameters
from artoo.control.loss import LossTerms

H = Hyperparameters()

GRADIENTS = {"improving": -0.2, "plateau": 0.0, "worsening": 0.2}
A, S = MacroState.ABANDON, MacroState.SUCCESS
REFINE, APPROACH = MacroState.REFINE, MacroState.CHANGE_APPROACH
PATH, SYMMETRY = MacroState.CHANGE_PATH, MacroState.BREAK_SYMMETRY

CELLS = [
    # (cell, gradient, D small, P small, Ω small, state): paper, Appendix A
    (1, "improving", True, True, True, S),
    (2, "improving", True, False, True, S),
    (3, "improving", True, True, False, A),
    (4, "improving", True, False, False, A),
    (5, "improving", False, True, True, REFINE),
    (6, "improving", False, False, True, APPROACH),
    (7, "improving", False, True, False, A),
    (8, "improving", False, False, False, A),
    (9, "plateau", True, True, True, S),
    (10, "plateau", True, False, True, S),
    (11, "plateau", True, True, False, A),
    (12, "plateau", True, False, False, A),
    (13, "plateau", False, True, True, PATH),
    (14, "plateau", False, False, True, SYMMETRY),
    (15, "plateau", False, True, False, A),
    (16, "plateau", False, False, False, A),
    (17, "worsening", True, True, True, S),
    (18, "worsening", True, False, True, S),
    (19, "worsening", True, True, False, A),
    (20, "worsening", True, False, False, A),
    (21, "worsening", False, True, True, REFINE),
    (22, "worsening", False, False, True, APPROACH),
    (23, "worsening", False, True, False, A),
    (24, "worsening", False, False, False, A),
]

terms_strategy = st.builds(LossTerms, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1, exclude_max=True))


@pytest.mark.parametrize(("cell", "gradient", "near", "environmental", "cheap", "state"), CELLS)
def test_cell(cell: int, gradient: str, near: bool, environmental: bool, cheap: bool, state: MacroState) -> None:
    """Each of the 24 cells of the paper's Appendix A gives its macro-state."""
    terms = LossTerms(0.1 if near else 0.9, 0.1 if environmental else 0.9, 0.1 if cheap else 0.9)
    assert macro_state(terms, GRADIENTS[gradient], H) is state, f"cell {cell}"


@pytest.mark.parametrize(("cell", "gradient", "near", "environmental", "cheap", "state"), CELLS)
def test_cell_at_its_boundary(
    cell: int, gradient: str, near: bool, environmental: bool, cheap: bool, state: MacroState
) -> None:
    """D = δ is near, P = ρ is environmental, Ω = θ is spent, and |∇L| = ε is signal: in every cell."""
    terms = LossTerms(
        H.delta if near else math.nextafter(H.delta, 1),
        H.rho if environmental else math.nextafter(H.rho, 1),
        math.nextafter(H.theta, 0) if cheap else H.theta,
    )
    edge = {"improving": -H.epsilon, "plateau": math.nextafter(H.epsilon, 0), "worsening": H.epsilon}
    assert macro_state(terms, edge[gradient], H) is state, f"cell {cell}"


def test_all_cells_are_listed() -> None:
    """The table is complete: 3 gradients × 2 D × 2 P × 2 Ω, each once."""
    assert {cell[:5][0] for cell in CELLS} == set(range(1, 25))
    assert len({cell[1:5] for cell in CELLS}) == 24


@pytest.mark.parametrize(
    "evidence", [Evidence(matched_subtasks=0), Evidence(unmet_task_criteria=1), Evidence(contradicted=True)]
)
def test_success_needs_more_than_a_small_distance(evidence: Evidence) -> None:
    """Without a match, with an unmet task criterion or a contradicted claim the cascade goes on as if D > δ."""
    decision = decide(LossTerms(0.25, 1.0, 0.1), 0.0, H, evidence=evidence)
    assert decision.state is MacroState.BREAK_SYMMETRY


def test_success_with_evidence() -> None:
    """D ≤ δ with evidence for it is a success, and the reason says so."""
    decision = decide(LossTerms(0.25, 1.0, 0.1), 0.0, H, evidence=Evidence())
    assert decision.state is MacroState.SUCCESS
    assert "δ" in decision.reason


def test_strict_accepts_no_remaining_distance() -> None:
    """δ = 0 turns every remaining distance into work."""
    strict = Hyperparameters(delta=0.0)
    assert decide(LossTerms(0.01, 0.0, 0.0), 0.0, strict, evidence=Evidence()).state is MacroState.CHANGE_PATH


def test_kill_switch_after_two_worsening_rounds() -> None:
    """∇L > ε twice in a row ends the task whatever Ω; once does not (Law 2)."""
    first = decide(LossTerms(0.9, 0.0, 0.1), 0.2, H, evidence=Evidence())
    assert (first.state, first.worsening_rounds) == (MacroState.REFINE, 1)
    second = decide(LossTerms(1.0, 0.0, 0.1), 0.2, H, evidence=Evidence(), worsening_rounds=first.worsening_rounds)
    assert (second.state, second.cause) == (MacroState.ABANDON, "divergence")


def test_an_improving_round_resets_the_kill_switch() -> None:
    """Only consecutive worsening rounds count, and ∇L = ε exactly is not yet worsening."""
    for gradient in (-0.2, 0.0, H.epsilon):
        decision = decide(LossTerms(0.9, 0.0, 0.1), gradient, H, evidence=Evidence(), worsening_rounds=1)
        assert decision.worsening_rounds == 0
        assert decision.state is not MacroState.ABANDON


def test_the_kill_switch_takes_no_success_away() -> None:
    """A round that is near enough is delivered even when it was worsening."""
    decision = decide(LossTerms(0.2, 0.0, 0.1), 0.5, H, evidence=Evidence(), worsening_rounds=1)
    assert decision.state is MacroState.SUCCESS


def test_no_replan_left_ends_what_would_go_on() -> None:
    """A recommendation to abandon stops refine and the like, and not a success."""
    spent = decide(LossTerms(0.9, 0.0, 0.1), 0.0, H, evidence=Evidence(), may_replan=False)
    assert (spent.state, spent.cause) == (MacroState.ABANDON, "replans")
    near = decide(LossTerms(0.2, 0.0, 0.1), 0.0, H, evidence=Evidence(), may_replan=False)
    assert near.state is MacroState.SUCCESS


def test_spent_cost_says_so() -> None:
    """Ω ≥ θ abandons before anything else, and names the cost."""
    decision = decide(LossTerms(0.0, 0.0, 0.8), 0.0, H, evidence=Evidence())
    assert (decision.state, decision.cause) == (MacroState.ABANDON, "cost")


def test_cell_six_is_suspicious() -> None:
    """Improving loss with a wrong approach is marked; its neighbours are not."""
    assert is_suspicious(LossTerms(0.9, 0.9, 0.1), -0.1, H)
    assert not is_suspicious(LossTerms(0.9, 0.5, 0.1), -0.1, H)
    assert not is_suspicious(LossTerms(0.9, 0.9, 0.1), -0.05, H)
    assert not is_suspicious(LossTerms(0.3, 0.9, 0.1), -0.1, H)
    assert not is_suspicious(LossTerms(0.9, 0.9, 0.8), -0.1, H)


def test_urgency_is_the_sign_beyond_epsilon() -> None:
    """Below ε steady; from ε on the sign."""
    assert urgency(0.0999, H.epsilon) is Urgency.STEADY
    assert urgency(H.epsilon, H.epsilon) is Urgency.WORSENING
    assert urgency(-H.epsilon, H.epsilon) is Urgency.IMPROVING


def test_which_states_end_a_task() -> None:
    """Accept, success and abandon end; the four directives do not."""
    assert {state for state in MacroState if state.ends} == {
        MacroState.ACCEPT,
        MacroState.SUCCESS,
        MacroState.ABANDON,
    }


@given(terms_strategy, st.floats(-1, 1))
def test_exactly_one_macro_state(terms: LossTerms, gradient: float) -> None:
    """Any input leads to one of six macro-states, and Ω ≥ θ always to abandon."""
    state = macro_state(terms, gradient, H)
    assert state is not MacroState.ACCEPT
    assert (state is MacroState.ABANDON) == (terms.cost >= H.theta)


@given(terms_strategy, st.floats(-1, 1), st.integers(0, 5), st.booleans())
def test_decide_only_ever_abandons_more(
    terms: LossTerms, gradient: float, worsening: int, may_replan: bool
) -> None:
    """Kill switch and replan budget change a decision to abandon or not at all."""
    plain = macro_state(terms, gradient, H, Evidence())
    decision = decide(terms, gradient, H, evidence=Evidence(), worsening_rounds=worsening, may_replan=may_replan)
    assert decision.state in (plain, MacroState.ABANDON)
    if plain is MacroState.SUCCESS:
        assert decision.state is MacroState.SUCCESS
