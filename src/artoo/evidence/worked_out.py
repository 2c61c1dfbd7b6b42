"""Figures that are worked out from what stands beside them: on their line, in their column, or anywhere, of few."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate, islice, pairwise, permutations, product

from artoo.evidence.numerals import Number, Shown, numbers_in, plain_digits

_TIME = re.compile(r"(?<![\d:.])([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?(?![\d:])")
_DATE = re.compile(r"(?<!\d)\d{4}-\d\d(?:-\d\d)?(?!\d)")
_FEW = 8
"""Numbers that are beside a figure: from more of them nearly every figure follows."""
MOST = 300
"""Numbers of an answer that are looked at."""
_MINUTE, _HOUR, _DAY = Decimal(60), Decimal(3_600), Decimal(86_400)
_UNITS = (_MINUTE, _HOUR, Decimal(24))
"""Of time, by which durations are said in others."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """A number, its place among all, its line, its column (the bars of a table before it, and numbers since), and
    whether it is a quantity: no part of a date or a time.
    """

    number: Number
    place: int
    line: int
    column: tuple[int, int]
    is_quantity: bool


def worked_out(
    wanted: Collection[str],
    answer: str,
    stated: Mapping[str, tuple[Decimal, ...]],
    outputs: Sequence[str],
    texts: Sequence[str],
) -> set[str]:
    """Those of the wanted numbers that follow from stated ones beside them, or from one of these and one of the few
    that were put out.
    """
    lines = plain_digits(answer).splitlines()
    cells = list(islice(_cells(lines), MOST))
    told = [
        replace(cell, number=replace(cell.number, values=stated[cell.number.text]))
        for cell in cells
        if cell.is_quantity and cell.number.text in stated
    ]
    shown = _few(number for text in outputs for number in numbers_in(text))
    known = {seconds for text in texts for _, seconds in _times(plain_digits(text))}
    asked = (cell for cell in cells if cell.number.text in wanted)
    follow = (
        (cell.number, (*_from_numbers(cell, told, shown), *_from_times(cell.number.start, lines[cell.line], known)))
        for cell in asked
    )
    return {said.text for said, values in follow if Shown([Number(0, 0, "", values)]).equals(said)}


def _from_numbers(cell: _Cell, told: Sequence[_Cell], shown: Sequence[Decimal]) -> Iterator[Decimal]:
    """What follows from two numbers of its line (or of all, where they are few), from one of these and one of that
    one's column, from its line or its column summed up, and from one in other units of time.
    """
    line = [each for each in told if each.line == cell.line]
    near = sorted(line or told, key=lambda each: abs(each.place - cell.place))[:_FEW]
    beside = _few(each.number for each in told) or _values(each.number for each in near)
    across = (pair for each in near for pair in product(_values([each.number]), _of_column(each, told)))
    for one, other in (pair for group in (beside, *across) for pair in permutations(group, 2)):
        yield from (one + other, one - other, one * other, one / other, one / other - 1, one + one * other)
    for one, other in product(beside, shown):
        yield from (one + other, other - one) if one != other else ()
    for one, unit in product((*beside, *shown), _UNITS):
        yield from (one * unit, one / unit)
    for run in (line, _others_of_column(cell, told)):
        before = [each.number for each in run if each.place < cell.place]
        behind = [each.number for each in run if each.place > cell.place]
        for numbers, reading in product((before[::-1], behind), (0, -1)):
            for count, total in enumerate(accumulate(number.values[reading] for number in numbers), 1):
                yield from (total, total / count) if count > 1 else ()


def _from_times(place: int, line: str, known: Collection[Decimal]) -> Iterator[Decimal]:
    """How long it is between two times of a line, of those nearest to a place; the hour of a time there that was
    shown on the other clock (2:30 for 14:30).
    """
    times = _times(line)
    for start, seconds in times:
        if start == place and seconds not in known and (seconds + _DAY / 2) % _DAY in known:
            yield seconds // _HOUR
    pairs = sorted(pairwise(times), key=lambda pair: min(abs(start - place) for start, _ in pair))
    for (_, one), (_, other) in pairs[:2]:
        for took in (abs(other - one), (other - one + _DAY) % _DAY):
            minutes, seconds = divmod(took, _MINUTE)
            yield from (took, took / _MINUTE, took / _HOUR, minutes, seconds, *divmod(minutes, _MINUTE))


def _cells(lines: Iterable[str]) -> Iterator[_Cell]:
    place = 0
    for line, text in enumerate(lines):
        before = (-1, 0)
        apart = {start for form in (_DATE, _TIME) for each in form.finditer(text) for start in range(*each.span())}
        for number in numbers_in(text):
            bars = text.count("|", 0, number.start)
            before = (bars, before[1] + 1 if bars == before[0] else 0)
            place += 1
            if any(number.values):
                yield _Cell(number, place, line, before, number.start not in apart)


def _others_of_column(cell: _Cell, told: Sequence[_Cell]) -> list[_Cell]:
    return [each for each in told if each.column == cell.column and each.line != cell.line]


def _of_column(cell: _Cell, told: Sequence[_Cell]) -> list[Decimal]:
    """The numbers next to one above and below it, and the largest of its column and of all in its unit."""
    column, like = _others_of_column(cell, told), [each for each in told if each.number.units == cell.number.units]
    largest = [max(among, key=lambda each: max(each.number.values)) for among in (column, like) if among]
    next_to = sorted(column, key=lambda each: abs(each.line - cell.line))[:2]
    values = _values(each.number for each in (*next_to, *largest))
    return [value for value in values if value not in cell.number.values]


def _values(numbers: Iterable[Number]) -> list[Decimal]:
    return list(dict.fromkeys(value for number in numbers for value in number.values if value))


def _few(numbers: Iterable[Number]) -> list[Decimal]:
    told = {number.text: number for number in numbers if any(number.values)}
    return _values(told.values()) if len(told) <= _FEW else []


def _times(text: str) -> list[tuple[int, Decimal]]:
    """The times of a text: where each stands, and its seconds."""
    found = ((each.start(), (Decimal(part or 0) for part in each.groups())) for each in _TIME.finditer(text))
    return [(start, hour * _HOUR + minute * _MINUTE + second) for start, (hour, minute, second) in found]
