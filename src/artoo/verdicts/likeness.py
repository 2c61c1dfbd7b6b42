"""Compare two independent answers by their numbers and names."""

from __future__ import annotations

from collections.abc import Sequence

from artoo.evidence.numerals import Number, Shown, numbers_in
from artoo.evidence.tokens import words_of

# An answer may have up to this many times as many tokens as the other one, plus two.
_LONGEST_MARK = 3


def same_answer(one: str, other: str, request: str = "") -> bool:
    """Return whether two answers give the same numbers and names. One of them may have a few more words around
    these.

    Words of the request are labels, so they do not count. Two zeros or two empty answers confirm nothing, because
    two failed attempts agree in the same way.
    """
    numbers, names = _stated(one, other, request)
    nested = names[0] <= names[1] or names[1] <= names[0]
    if all(numbers):
        return _covers(*numbers) and not _zero(numbers) and (nested or not all(names))
    return all(names) and _near(*map(len, names)) and nested


def _stated(one: str, other: str, request: str) -> tuple[list[list[Number]], list[set[str]]]:
    """Return the numbers and the names of both answers."""
    numbers = [_numbers(text) for text in (one, other)]
    names = [
        set(words_of(text)) - set(words_of(request)) - {word for number in found for word in words_of(number.text)}
        for text, found in zip((one, other), numbers, strict=True)
    ]
    return numbers, names


def _zero(numbers: Sequence[Sequence[Number]]) -> bool:
    return all(each.values and not any(each.values) for found in numbers for each in found)


def _numbers(text: str) -> list[Number]:
    found: list[Number] = []
    for number in numbers_in(text):
        if not any(number.values == known.values for known in found):
            found.append(number)
    return found


def _covers(one: Sequence[Number], other: Sequence[Number]) -> bool:
    """Return whether the longer answer has every number of the shorter one, and not many more."""
    shorter, longer = sorted((one, other), key=len)
    return _near(len(one), len(other)) and all(any(_same(a, b) for b in longer) for a in shorter)


def _same(one: Number, other: Number) -> bool:
    return Shown((one,)).has(other) or Shown((other,)).has(one)


def _near(one: int, other: int) -> bool:
    return max(one, other) <= _LONGEST_MARK * min(one, other) + 2
