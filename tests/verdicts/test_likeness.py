"""Two answers say the same when their numbers and names do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.verdicts.likeness import same_answer


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("42", "The sum is 42."),
        ("1.234,5", "1234.5"),
        ("Berlin", "berlin"),
        ("Anna: 3\nBen: 4", "Ben 4, Anna 3"),
        ("33.33", "33.3333"),
        ("١٢", "12"),
    ],
)
def test_the_same_in_other_words(one: str, other: str) -> None:
    """Formats, order, rounding, another script's digits and a little more around them make no difference."""
    assert same_answer(one, other)
    assert same_answer(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("42", "43"),
        ("Berlin", "Paris"),
        ("0", "0"),
        ("", ""),
        ("3", "1 2 3 4 5 6 7 8 9 10 11 12"),
        ("Anna 3", "Ben 3"),
    ],
)
def test_what_confirms_nothing(one: str, other: str) -> None:
    """Another value, another name; two zeros or two empty answers; one that lists everything."""
    assert not same_answer(one, other)


def test_words_of_the_request_are_labels() -> None:
    """What the request says itself tells two answers not apart, and makes none of them the same."""
    assert same_answer("total 7", "sum 7", request="the sum, or total, please")
    assert not same_answer("total", "sum", request="the sum, or total, please")


@given(st.text(max_size=80), st.text(max_size=80))
@settings(deadline=None, max_examples=200)
def test_the_order_of_two_answers_does_not_matter(one: str, other: str) -> None:
    """Whichever came first, the verdict is the same."""
    assert same_answer(one, other) == same_answer(other, one)
