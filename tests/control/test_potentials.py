from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artoo.control.potentials import (
    QUANTISATION,
    Sums,
    classify,
    contradicts,
    dissonance,
    failure_stimulus,
    holds_as_such,
    promotable,
    promotion_scale,
    retention,
)

attentions = st.floats(0, 1e6)


@pytest.mark.parametrize(
    ("state", "f", "sigma", "k"),
    [
        ("abandon", 0.95, -1.0, 0.05),
        ("accept", 0.90, 1.0, 0.05),
        ("change_approach", 0.85, -1.0, 0.05),
        ("success", 0.80, 1.0, 0.05),
        ("break_symmetry", 0.75, 1.0, 0.05),
        ("change_path", 0.30, 0.0, 0.2),
        ("refine", 0.10, 0.5, 0.5),
    ],
)
def test_quantisation(state: str, f: float, sigma: float, k: float) -> None:
    """Every macro-state has exactly the magnitude, valence and decay of the paper's matrix."""
    stimulus = QUANTISATION[state]
    assert (stimulus.f, stimulus.sigma, stimulus.k) == (f, sigma, k)


@pytest.mark.parametrize(("k", "days"), [(0.05, 14), (0.2, 3.5), (0.5, 1.4)])
def test_half_lives(k: float, days: float) -> None:
    """The three decay constants have the half-lives that the paper states."""
    assert retention(k, days) == pytest.approx(0.5, rel=0.02)


def test_timeless() -> None:
    """k = 0 never fades."""
    assert retention(0, 1e9) == 1.0


@given(st.floats(0, 100), st.floats(-1e6, 0))
def test_the_future_counts_as_now(k: float, days: float) -> None:
    """An entry from the future is never amplified."""
    assert retention(k, days) == 1.0


def test_neutral_entries_do_not_widen_the_band() -> None:
    """Twenty neutral entries and one abandon are Avoid: what has no valence says nothing about how mixed it is."""
    assert classify(Sums(20 * 0.3 + 0.95, -0.95, 0.95)) == "avoid"


@pytest.mark.parametrize(
    ("attention", "decision", "advice"),
    [
        (0.0, 0.0, "ignore"),
        (math.nextafter(0.5, 0), 0.49, "ignore"),
        (0.5, 0.2, "caution"),
        (0.5, math.nextafter(0.2, 1), "exploit"),
        (0.5, -0.2, "caution"),
        (0.5, math.nextafter(-0.2, -1), "avoid"),
        (1.0, 0.2, "caution"),
        (5.0, 1.0, "caution"),
        (5.0, math.nextafter(1.0, 2), "exploit"),
        (5.0, -1.0, "caution"),
        (5.0, math.nextafter(-1.0, -2), "avoid"),
    ],
)
def test_exact_boundaries(attention: float, decision: float, advice: str) -> None:
    """Ignore ends at .5 exclusive; the Caution band is max(.2, .2·attention), bounds included."""
    assert classify(Sums(attention, decision, attention)) == advice


def test_high_variance_is_caution() -> None:
    """Five great and five terrible outcomes are Caution: not Ignore, and not Avoid."""
    good, bad = QUANTISATION["accept"], QUANTISATION["abandon"]
    attention = 5 * good.f + 5 * bad.f
    decision = 5 * good.sigma * good.f + 5 * bad.sigma * bad.f
    assert classify(Sums(attention, decision, attention)) == "caution"


@given(attentions, st.floats(-1, 1))
def test_classification_is_odd(attention: float, share: float) -> None:
    """Turning every valence round turns Exploit into Avoid and leaves the rest."""
    mirrored = {"exploit": "avoid", "avoid": "exploit", "caution": "caution", "ignore": "ignore"}
    decision = attention * share
    assert (
        classify(Sums(attention, -decision, attention)) == mirrored[classify(Sums(attention, decision, attention))]
    )


def test_failing_pairs_in_break_symmetry_are_anti_patterns() -> None:
    """What failed in break_symmetry is written like change_approach, so a constant failure teaches Avoid."""
    assert failure_stimulus("break_symmetry") == QUANTISATION["change_approach"]
    assert failure_stimulus("change_path") == QUANTISATION["change_path"]
    with pytest.raises(KeyError):
        failure_stimulus("init")


def test_dissonance_opposes_its_rule() -> None:
    """Dissonance weighs .9, decays with .05, and has the sign that the rule has not; σ = 0 is a constraint."""
    assert (dissonance(1).f, dissonance(1).sigma, dissonance(1).k) == (0.9, -1.0, 0.05)
    assert dissonance(-1).sigma == dissonance(0).sigma == 1.0


def test_contradiction() -> None:
    """A practice is contradicted below zero, a constraint above; silence contradicts nothing."""
    assert contradicts(1, -0.01)
    assert contradicts(-1, 0.01)
    assert contradicts(0, 0.01)
    assert not contradicts(1, 0) and not contradicts(-1, 0)
    assert not contradicts(1, 1) and not contradicts(-1, -1)


@pytest.mark.parametrize(
    ("attention", "decision", "expected"),
    [(5, 3, True), (5, -3, True), (4.99, 3, False), (5, 2.99, False), (50, -2.99, False)],
)
def test_promotion_thresholds(attention: float, decision: float, expected: bool) -> None:
    """A cluster is promotable from attention 5 and |decision| 3 on."""
    assert promotable(attention, decision) is expected


def test_the_thresholds_follow_false_promotions() -> None:
    """One mistake in twenty is tolerated, an early one doubles the thresholds, and four times is the most."""
    assert promotion_scale(0, 0) == promotion_scale(100, 0) == 1
    assert promotion_scale(1, 1) == pytest.approx(2 / 21 / 0.05)
    assert promotion_scale(100, 1) == 1
    assert promotion_scale(100, 11) == pytest.approx(2)
    assert promotion_scale(50, 50) == 4
    assert promotable(5, 3) and not promotable(5, 3, 1.1) and promotable(5.6, -3.4, 1.1)


def test_what_holds_as_such() -> None:
    """So many kinds of request that the next is an exception in one case of twenty, by the rule of succession."""
    assert not holds_as_such(0, 0) and not holds_as_such(17, 0)
    assert holds_as_such(18, 0) and not holds_as_such(18, 1)
    assert not holds_as_such(37, 1) and holds_as_such(38, 1)
