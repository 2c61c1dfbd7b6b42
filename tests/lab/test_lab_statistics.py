"""Intervals, frontiers and plots."""

from __future__ import annotations

import math
import random
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.plot import Line, lines, ticks
from lab.statistics import bootstrap, difference, mean_of, solved_at

CURVE = [(2.0, 0.2), (4.0, 0.6), (8.0, 0.8)]


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """95 % intervals of 60 samples with a known mean cover it in 85 to 100 % of cases."""
    chance = random.Random(1)
    covered = 0
    for number in range(60):
        found = mean_of([chance.gauss(3.0, 1.0) for _ in range(80)], number)
        covered += found.low <= 3.0 <= found.high
    assert covered >= 51


def test_a_paired_difference_sees_what_pairs_share() -> None:
    """A constant step on noisy values has no width at all."""
    values = [random.Random(2).random() * 100 for _ in range(50)]
    found = difference([value + 1.0 for value in values], values)
    assert found.above and found.high - found.low < 1e-9


def test_no_jobs_have_no_interval() -> None:
    """And pairs must be of the same jobs."""
    with pytest.raises(ValueError, match="at least one"):
        bootstrap(0, lambda at: 0.0)
    with pytest.raises(ValueError, match="zip"):
        difference([1.0], [1.0, 2.0])


def test_a_frontier_is_read_between_its_points() -> None:
    """By a straight line from nothing; beyond the last point nothing is gained."""
    assert solved_at(CURVE, 1.0) == 0.1 and math.isclose(solved_at(CURVE, 3.0), 0.4)
    assert solved_at(CURVE, 100.0) == 0.8


@given(st.floats(-1e4, 1e4), st.floats(1e-3, 1e4))
def test_ticks_hold_the_values(low: float, span: float) -> None:
    """At most about a dozen, rising, from below to above."""
    found = ticks(low, low + span)
    assert found == sorted(found) and 2 <= len(found) <= 12
    assert found[0] <= low + 1e-6 * (abs(low) + span) and found[-1] >= low + span - 1e-6 * (abs(low) + span)


def test_plots_are_svg_and_names_are_escaped() -> None:
    """One polyline a series; `<` in a name is text."""
    drawn = ElementTree.fromstring(lines("t", "x", "y", [Line("a < b", ((0, 0), (1, 2)), ((0, 1), (1, 3)))]))
    space = "{http://www.w3.org/2000/svg}"
    assert len(drawn.findall(f"{space}polyline")) == 1
    assert "a < b" in {each.text for each in drawn.findall(f"{space}text")}
