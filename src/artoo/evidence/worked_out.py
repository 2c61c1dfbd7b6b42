"""Figures that are worked out: by a formula before them, from two numbers near them, from a run of numbers, from a
column that was put out.

numbers and times of an answer, each with its line and column ──► those that follow from what is stated or shown,
                                                                  from these, and so on until nothing more does
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate, chain, combinations, islice, pairwise, product

from artoo.evidence.numerals import PERCENT, TIME, Number, numbers_in, plain_digits, times_in
from artoo.evidence.tokens import blanked

_DATE = re.compile(r"(?<!\d)\d{4}-\d\d(?:-\d\d)?(?!\d)")
_NEAR = 8
"""Numbers that are near a figure: from more of them nearly every figure follows."""
_FEW = 2
"""Numbers that were put out in all, so few that each is near every figure."""
_MOST = 300
"""Numbers of an answer that are looked at."""
_PRECISE = 100
"""A whole number from here on may be a rounded one: nearly every ratio or mean is near a smaller one."""
_MINUTE, _HOUR, _DAY = Decimal(60), Decimal(3_600), Decimal(86_400)
_BYTE = (Decimal(1),)
"""Said or not: a bare number may be of bytes."""
_OPERATIONS: Mapping[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: Decimal.__add__,
    ast.Sub: Decimal.__sub__,
    ast.Mult: Decimal.__mul__,
    ast.Div: Decimal.__truediv__,
}
_SIGNS = str.maketrans("\u00d7\u00b7\u22c5\u2217x\u00f7\u2212\u2013\u2248\u2243\u2252", "*****/--===")
_JOINT = re.compile(r"\s*(?:[^\W\d]{1,16}\.?)?[^\w()]?\s*(\)*)\s*([-+*/=])\s*(\(*)\s*[^\w()]?\s*")
"""Between two numbers of a formula: the unit of the first, brackets and a sign."""
_BETWEEN = 40
"""Characters of that: more are no formula, and would be tried in many ways."""
_READINGS = 64
"""Of the numbers of one formula together."""
_CONSTANTS = frozenset(map(Decimal, (7, 12, 24, 60, 100, 365, 1_000, 1_024, 3_600)))
"""What units of time, shares and prefixes multiply by: no call has to show it where a formula does so."""
_CLOCK = (_DAY,)
"""Instead of a unit: a time of day or a duration, in seconds."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """A number or a time, its unit, what it amounts to, its line and column: bars before it, and numbers since."""

    number: Number
    unit: tuple[Decimal, ...]
    amounts: tuple[Decimal, ...]
    line: int
    column: tuple[int, int]


def worked_out(
    wanted: Collection[str], answer: str, stated: Mapping[str, tuple[Decimal, ...]], outputs: Sequence[str]
) -> set[str]:
    """Those of the wanted numbers that follow from stated ones (with their amounts) or from what was put out."""
    cells = list(islice(_cells(answer), _MOST))
    shown = [[*_cells(output, apart=True)] for output in outputs]
    few = [*chain(*shown)] if sum(map(len, shown)) <= _FEW else []
    totals = [total for each in shown for total in _totals(each)]
    known = {**dict(_constants(cells, answer)), **stated}
    while True:
        told = [replace(cell, amounts=known[cell.number.text]) for cell in cells if cell.number.text in known]
        left = [cell for cell in cells if cell.number.text in wanted and cell.number.text not in known]
        found = {
            cell.number.text: cell.amounts
            for cell in left
            if _covers(cell, chain(totals, _from_formula(cell, cells, known, answer), _from_cells(cell, told, few)))
        }
        if not found:
            return known.keys() & set(wanted)
        known |= found


def _covers(cell: _Cell, amounts: Iterable[Decimal]) -> bool:
    """Whether one of these is what it says."""
    said = cell.number
    spans = [*said.spans((Decimal(1), *said.units), least=0 if said.units else _PRECISE)]
    return any(low <= amount <= high for amount in amounts for low, high in spans)


def _joint(left: _Cell, right: _Cell, text: str) -> re.Match[str] | None:
    """What stands between two numbers of one formula."""
    between = text[left.number.end : right.number.start].translate(_SIGNS)
    return _JOINT.fullmatch(between) if left.line == right.line and len(between) <= _BETWEEN else None


def _constants(cells: Sequence[_Cell], text: str) -> Iterator[tuple[str, tuple[Decimal, ...]]]:
    for pair in pairwise(cells):
        if (joint := _joint(*pair, text)) and joint[2] in "*/":
            yield from ((one.number.text, one.amounts) for one in pair if not _CONSTANTS.isdisjoint(one.amounts))


def _from_formula(
    cell: _Cell, cells: Sequence[_Cell], known: Mapping[str, tuple[Decimal, ...]], text: str
) -> Iterator[Decimal]:
    """What the formula before it comes to, if all its numbers are known and a sign of equality follows."""
    formula, operands, right = "", list[tuple[Decimal, ...]](), cell
    for left in reversed(cells[: cells.index(cell)]):
        joint = _joint(left, right, text)
        if joint is None or (joint[2] == "=") is bool(operands):
            break
        if left.number.text not in known:
            return
        closed, sign, opened = joint.groups()
        formula = f"n{len(operands)}{closed}{sign}{opened}{formula}" if operands else f"n0{closed}"
        operands.append(known[left.number.text])
        right = left
    formula = "(" * (formula.count(")") - formula.count("(")) + formula
    for values in islice(product(*operands), _READINGS if len(operands) > 1 else 0):
        with suppress(SyntaxError, ArithmeticError):
            yield _value(ast.parse(formula, mode="eval").body, values)


def _value(formula: ast.expr, values: Sequence[Decimal]) -> Decimal:
    """Its numbers are named by their places."""
    if isinstance(formula, ast.BinOp):
        return _OPERATIONS[type(formula.op)](_value(formula.left, values), _value(formula.right, values))
    return values[int(ast.unparse(formula)[1:])]


def _from_cells(cell: _Cell, told: Sequence[_Cell], few: Sequence[_Cell]) -> Iterator[Decimal]:
    """What follows from two of those near it (its own line first), from one of these and the largest of that one's
    line, of its column and of all, from one in another unit of time, and from its line or its column summed up.
    """
    place = cell.number.start
    near = sorted(told, key=lambda each: (each.line != cell.line, abs(each.number.start - place)))[:_NEAR]
    runs = ((one, run) for one in near for run in (*_runs(one, told), told))
    far = [(one, largest) for one, run in runs if (largest := _largest(run, one.unit)) is not None]
    percent = cell.unit == PERCENT
    for one, other in (*combinations(near, 2), *product(near, () if percent else few), *far):
        yield from _of_two(one, other, percent=percent)
        yield from _of_two(other, one, percent=percent)
    for amount in (amount for each in (*near, *few) if not each.unit for amount in each.amounts):
        yield from (amount * _MINUTE, amount / _MINUTE, amount * _HOUR, amount / _HOUR)
    for run in _runs(cell, told):
        yield from chain(*_sums([each for each in run if each.number.start < place][::-1]))
        yield from chain(*_sums([each for each in run if each.number.start > place]))


def _largest(run: Iterable[_Cell], unit: tuple[Decimal, ...]) -> _Cell | None:
    return max((each for each in run if each.unit == unit), key=lambda each: max(each.amounts), default=None)


def _runs(cell: _Cell, told: Sequence[_Cell]) -> tuple[list[_Cell], list[_Cell]]:
    """Its line and its column, without itself."""
    line = [each for each in told if each.line == cell.line and each.number.start != cell.number.start]
    return line, [each for each in told if each.column == cell.column and each.line != cell.line]


def _sums(run: Sequence[_Cell]) -> Iterator[list[Decimal]]:
    """Sums and means of its first two, three … of one unit, in either reading."""
    run = [each for each in run if each.unit == run[0].unit]
    for reading in (0, -1):
        totals = enumerate(accumulate(each.amounts[reading] for each in run), 1)
        yield [value for count, total in totals if count > 1 for value in (total, total / count)]


def _totals(shown: Iterable[_Cell]) -> Iterator[Decimal]:
    """The sum and the mean of every column of an output, also without its first number: a heading may be one."""
    columns = defaultdict[tuple[object, ...], list[_Cell]](list)
    for cell in shown:
        columns[cell.column, cell.unit].append(cell)
    for run in columns.values():
        for sums in (*_sums(run), *_sums(run[1:])):
            yield from sums[-2:]


def _of_two(a: _Cell, b: _Cell, *, percent: bool) -> Iterator[Decimal]:
    """What follows from two in this order, as a share or a change in per cent, or as a number. Sums and differences
    need one unit; a percentage is a factor, a surcharge or a discount.
    """
    like, factor = a.unit == b.unit, b.unit in ((), PERCENT)
    if _CLOCK in (a.unit, b.unit):
        yield from _how_long(a.amounts[0], b.amounts[0]) if like else ()
        return
    for one, other in product(a.amounts, b.amounts):
        if one == other:
            continue
        if percent and like:
            yield from (one / other, abs(one / other - 1))
        if like and (not percent or b.unit == PERCENT):
            yield from (one + other, one - other)
        if not percent and (like or factor):
            yield one / other
        if not percent and factor:
            yield one * other
        if not percent and b.unit == PERCENT:
            yield from (one + one * other, one - one * other)


def _how_long(start: Decimal, end: Decimal) -> Iterator[Decimal]:
    """From one time to another, perhaps over midnight: in all, and as hours, minutes and seconds; both together."""
    took = (end - start + _DAY) % _DAY
    minutes, seconds = divmod(took, _MINUTE)
    yield from (took, took / _MINUTE, took / _HOUR, minutes, seconds, *divmod(minutes, _MINUTE), start + end)


def _cells(text: str, *, apart: bool = False) -> Iterator[_Cell]:
    """The numbers and times of a text; parts of a date are no quantities."""
    plain, before = plain_digits(text), Counter[tuple[int, int]]()
    numbers = [*numbers_in(blanked(TIME, blanked(_DATE, plain)), apart=apart), *times_in(plain)]
    for number in sorted(numbers, key=lambda each: each.start):
        line, begins = plain.count("\n", 0, number.start), plain.rfind("\n", 0, number.start)
        bars = plain.count("|", begins + 1, number.start)
        before[line, bars] += 1
        if amounts := tuple(filter(None, number.amounts)):
            unit = _CLOCK if TIME.fullmatch(number.text) else number.units if number.units != _BYTE else ()
            yield _Cell(number, unit, amounts, line, (bars, before[line, bars]))
