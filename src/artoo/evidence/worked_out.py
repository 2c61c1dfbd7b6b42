"""Derive figures of an answer by sums, ratios and dates from stated or printed numbers, with limits on pairs.

A figure follows from the formula before it, from two numbers near it, from a run of numbers, or from a printed
column. Derived figures count as known in the next pass. The passes end when one of them derives nothing more.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate, chain, combinations, islice, pairwise, permutations, product

from artoo.evidence.numerals import DATE, PERCENT, TIME, Number, days_in, numbers_in, plain_digits, times_in
from artoo.evidence.tokens import blanked

_NEAR = 8  # numbers near a figure that are combined; from more numbers nearly every figure would follow
_FEW_DATES = 4  # with at most this many printed and stated dates, any two of them may be meant
_FEW = 2  # with at most this many numbers in all outputs, each counts as near every figure
_MOST = 300  # numbers of an answer that are examined
_PRECISE = 100  # least whole number that may be rounded: nearly every ratio or mean is near a smaller number
_SHORT = 6  # if at most this many numbers were printed together, two of them may be compared
_ONE, _TWO, _WEEK, _MINUTE, _HOUR, _DAY, _HUNDRED = map(Decimal, (1, 2, 7, 60, 3_600, 86_400, 100))
_YEAR = re.compile(r"(?<![\w.,])(?:1[5-9]|2[01])\d\d(?![\w.,]\d)(?!\w)")
_BYTE = (_ONE,)  # a bare number may count bytes, with or without a unit
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_OPERATIONS = (Decimal.__add__, Decimal.__sub__, Decimal.__mul__, Decimal.__truediv__)
_SIGNS = str.maketrans("\u00d7\u00b7\u22c5\u2217\u00f7\u2212x\u2013\u2248\u2243\u2252", "****/-*-===")
# This matches the text between two numbers of a formula: the unit of the first number, brackets and a sign.
_JOINT = re.compile(r"\s*(?:[^\W\d]{1,16}\.?)?[^\w()]?\s*(\)*)\s*([-+*/=])\s*(\(*)\s*[^\w()]?\s*")
_BETWEEN = 40  # most characters that _JOINT matches: longer text is no formula, and would be tried in many ways
_READINGS = 64  # combinations of readings that are tried for the numbers of one formula
# Factors of units of time, of percentages and of prefixes. If a formula uses them as factors, no call has to show
# them.
_CONSTANTS = frozenset(map(Decimal, (7, 12, 24, 52, 60, 100, 365, 1_000, 1_024, 3_600)))
_FACTORS = frozenset(map(Decimal, range(2, 11)))  # factors that words express, such as twice or a quarter
_STEPS_UP = tuple(map(Decimal, (60, 1_000, 1_440, 3_600, 60_000, 86_400)))
# Factors from one unit of time to another, from milliseconds to days.
_STEPS_DOWN = (*_STEPS_UP, Decimal(3_600_000))
# Factors from days to weeks, from months to years, and from hours to days. They count only if the result is above
# one and is a whole number or a whole number and a half.
_SMALL_STEPS = tuple(map(Decimal, (7, 12, 24)))
# Periods that are divided by an interval: every 15 minutes is 96 times a day. Results below `_OFTEN` may be chance.
_PERIODS = tuple(map(Decimal, (1_440, 3_600, 86_400)))
_OFTEN = 90
_LONG = 900  # from this many of a smaller unit on, an amount may be stated in two units
_MONTHS = Decimal(12)
# These are used in place of a unit: the first for a time of day or a duration (in seconds), the second for a date
# (in days), which only formulas use.
_CLOCK, _DATED = (_DAY,), (Decimal(0),)
_Amounts = Mapping[str, tuple[Decimal, ...]]


@dataclass(frozen=True, slots=True)
class _Cell:
    """A number or a time with its unit, its possible amounts, its line and its column. The column is given by the
    number of bars before it in the line, and by the number of numbers since the last bar."""

    number: Number
    unit: tuple[Decimal, ...]
    amounts: tuple[Decimal, ...]
    line: int
    column: tuple[int, int]


def worked_out(
    wanted: Collection[str], answer: str, stated: _Amounts, texts: Sequence[str], outputs: int
) -> set[str]:
    """Return those wanted numbers that follow from the `stated` numbers (given with their amounts) or from the
    outputs, which are the first `outputs` of `texts`."""
    cells = list(islice(_cells(answer), _MOST))
    shown = [[*_cells(output, apart=True)] for output in texts[:outputs]]
    few = [*chain(*shown)] if sum(map(len, shown)) <= _FEW else []
    short = [*chain(*shown)] if sum(map(len, shown)) <= _SHORT else []
    totals = [total for each, output in zip(shown, texts, strict=False) for total in _totals(each, output)]
    runs = list(islice(_runs_of(shown), _MOST))
    spans = [*_years(texts), *_in_other_units(short), *_since(texts, outputs)]
    rates = (rate for text in texts for each in numbers_in(text) if each.units == PERCENT for rate in each.amounts)
    stated = {**_arithmetic(cells, answer, stated), **stated}
    constants, factors = _unseen(cells, answer, _FACTORS.union(*((1 + rate, 1 - rate) for rate in rates)))
    known = {**constants, **stated}
    asked = [cell for cell in cells if cell.number.text in wanted and cell.number.text not in known]
    dates = [cell for cell in cells if cell.unit == _DATED and cell.number.text in stated]
    days = [*chain(*(found for text in texts[outputs:] if len(found := [*days_in(text)]) <= _FEW))]
    known |= {cell.number.text: cell.amounts for cell in asked if _covers(cell, _between(cell, dates, days))}
    while True:
        usable = {**factors, **known}
        numbers = (cell for cell in cells if cell.unit != _DATED and cell.number.text in known)
        told = [replace(cell, amounts=known[cell.number.text]) for cell in numbers]
        left = [cell for cell in cells if cell.number.text in wanted and cell.number.text not in usable]
        near = ((cell, _from_cells(cell, told, few), _of_runs(cell, runs)) for cell in left)
        ways = (
            (cell, _from_formula(cell, cells, usable, answer), () if cell.unit else spans, *way)
            for cell, *way in near
        )
        found = {cell.number.text: cell.amounts for cell, *way in ways if _covers(cell, chain(totals, *way))}
        if not found:
            return usable.keys() & set(wanted)
        known |= found


def _covers(cell: _Cell, amounts: Iterable[Decimal]) -> bool:
    """Return whether one of these amounts is the value of the cell, allowing for the rounding of the cell."""
    spans = [*cell.number.spans((_ONE, *cell.number.units), least=0 if cell.number.units else _PRECISE)]
    return any(low <= amount <= high for amount in amounts for low, high in spans)


def _joint(left: _Cell, right: _Cell, text: str) -> re.Match[str] | None:
    """Match the text between two numbers of one formula. Return None if the numbers do not belong to one
    formula."""
    between = text[left.number.end : right.number.start].translate(_SIGNS)
    return _JOINT.fullmatch(between) if left.line == right.line and len(between) <= _BETWEEN else None


def _unseen(cells: Sequence[_Cell], text: str, times: frozenset[Decimal]) -> tuple[_Amounts, _Amounts]:
    """Return the numbers in formulas that no call has to show: constants, and numbers that are only used as
    factors."""
    joints = [joint and joint[2] for joint in (_joint(*pair, text) for pair in pairwise(cells))]
    constants, factors, others = dict[str, tuple[Decimal, ...]](), dict[str, tuple[Decimal, ...]](), set[str]()
    for cell, before, behind in zip(cells, (None, *joints), (*joints, None), strict=False):
        name, amounts = cell.number.text, set(cell.amounts)
        if amounts & _CONSTANTS and {"*", "/"} & {before, behind}:
            constants[name] = cell.amounts
        elif (amounts & times and "*" in (before, behind)) or (_TWO in amounts and before == "/"):
            factors[name] = cell.amounts
        else:
            others.add(name)
    return constants, {name: factors[name] for name in factors.keys() - others}


def _from_formula(cell: _Cell, cells: Sequence[_Cell], known: _Amounts, text: str) -> Iterator[Decimal]:
    """Return the values of the formula that stands before the cell. All its numbers must be known, and `=` must
    follow it."""
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


def _arithmetic(cells: Sequence[_Cell], text: str, stated: _Amounts) -> _Amounts:
    """Return the numbers of correct formulas that contain no stated number. Such formulas are plain arithmetic and
    claim nothing about this machine."""
    every, found = {cell.number.text: cell.amounts for cell in cells}, dict[str, tuple[Decimal, ...]]()
    for place, cell in enumerate(cells):
        begins = place
        while begins and _joint(cells[begins - 1], cells[begins], text):
            begins -= 1
        used = {each.number.text: each.amounts for each in cells[begins : place + 1]}
        if (
            len(used) > 2
            and used.keys().isdisjoint(stated)
            and _covers(cell, _from_formula(cell, cells, every, text))
        ):
            found |= used
    return found


def _value(of: ast.expr, values: Sequence[Decimal]) -> Decimal:
    """Return the value of a formula. In the formula, `n0`, `n1` … stand for the numbers at these positions in
    `values`."""
    if isinstance(of, ast.BinOp):
        return _OPERATIONS[_OPERATORS.index(type(of.op))](_value(of.left, values), _value(of.right, values))
    return values[int(ast.unparse(of)[1:])]


def _from_cells(cell: _Cell, told: Sequence[_Cell], few: Sequence[_Cell]) -> Iterator[Decimal]:
    """Return values that can be derived for a cell from near numbers: from two near numbers (those of its line
    first), from a near number and the largest number of that number's line, of its column or of all, from a near
    number in another unit of time, and from sums and means along the cell's line and column."""
    place = cell.number.start
    near = sorted(told, key=lambda each: (each.line != cell.line, abs(each.number.start - place)))[:_NEAR]
    runs = ((one, run) for one in near for run in (*_runs(one, told), told))
    alike = ((one, [each for each in run if each.unit == one.unit]) for one, run in runs)
    far = [(one, max(run, key=lambda each: max(each.amounts))) for one, run in alike if run]
    percent = cell.unit == PERCENT
    for one, other in (*combinations(near, 2), *product(near, () if percent else few), *far):
        yield from (*_of_two(one, other, percent=percent), *_of_two(other, one, percent=percent))
    yield from _in_other_units(near)
    for run in _runs(cell, told):
        yield from chain(*_sums([each for each in run if each.number.start < place][::-1]))
        yield from chain(*_sums([each for each in run if each.number.start > place]))


def _runs_of(shown: Iterable[Sequence[_Cell]]) -> Iterator[list[_Cell]]:
    """Return the runs of 2 to 6 numbers of one unit that fill a whole column, line or output."""
    for cells in shown:
        runs = defaultdict[tuple[object, ...], list[_Cell]](list)
        for cell in cells:
            unit = cell.unit if cell.unit in ((), PERCENT, _CLOCK) else _BYTE  # sizes with any prefix
            for place in (("column", cell.column, unit), ("line", cell.line, unit), (unit,)):
                runs[place].append(cell)
        yield from (run for run in runs.values() if 1 < len(run) <= _SHORT and run[0].unit != _CLOCK)


def _of_runs(cell: _Cell, runs: Iterable[Sequence[_Cell]]) -> Iterator[Decimal]:
    """Return values that can be derived from two numbers that were printed together: their difference and their
    ratio. For a percentage, also return their relative change and the share of each in the total, which may be one
    of the numbers.
    """
    for run, reading in product(runs, (0, -1)):
        amounts = [each.amounts[reading] for each in run]
        if cell.unit == PERCENT:
            total = max(amounts) if 2 * max(amounts) == sum(amounts) else sum(amounts)
            yield from (amount / total for amount in amounts)
            yield from (abs(a / b - 1) for a, b in permutations(amounts, 2))
        else:
            points = _HUNDRED if run[0].unit == PERCENT else _ONE
            yield from (value for a, b in permutations(amounts, 2) if a != b for value in ((a - b) * points, a / b))


def _years(texts: Iterable[str]) -> list[Decimal]:
    """Return the number of years between each two years in the texts, if there are only few years. If the texts
    contain a full date, also return one year less."""
    days = [day for text in texts for day in days_in(text)]
    seen = {Decimal(year) for text in texts for year in _YEAR.findall(plain_digits(text))}
    apart = {abs(one - other) for one, other in combinations(seen, 2)} if len(seen) <= _SHORT else set[Decimal]()
    return [*apart, *(each - 1 for each in apart if days and each > 1)]


def _in_other_units(cells: Iterable[_Cell]) -> Iterator[Decimal]:
    """Return bare numbers converted to other units of time, and to hours, minutes and seconds. Also return how
    often such an interval fits into a day or an hour."""
    for amount in (amount for each in cells if not each.unit for amount in each.amounts):
        yield from (amount * step for step in _STEPS_UP)
        yield from (amount / step for step in _STEPS_DOWN)
        yield from (amount / step for step in _SMALL_STEPS if amount > step and not amount * 2 % step)
        yield from (often for period in _PERIODS if (often := period / amount) >= _OFTEN)
        if amount >= _LONG:
            minutes, seconds = divmod(amount, _MINUTE)
            yield from (minutes, seconds, *divmod(minutes, _MINUTE))


def _since(texts: Sequence[str], outputs: int) -> Iterator[Decimal]:
    """Return the number of days, weeks, months and years from a printed date to a stated date, if there are only
    few dates."""
    put_out = {day.text: day for text in texts[:outputs] for day in days_in(text)}
    told = {day.text: day for text in texts[outputs:] for day in days_in(text)}
    for one, other in product(put_out.values(), told.values()) if len(put_out) + len(told) <= _FEW_DATES else ():
        days = abs(one.amounts[0] - other.amounts[0])
        months = abs(_month(one) - _month(other))
        yield from (days, days / _WEEK, months, months - 1, months / _MONTHS)


def _month(day: Number) -> Decimal:
    year, month, *_ = map(Decimal, day.parts)
    return year * _MONTHS + month


def _between(cell: _Cell, dates: Sequence[_Cell], days: Sequence[Number]) -> Iterator[Decimal]:
    """Return the number of days or weeks between a date in the cell's line and another date there or in `days`."""
    own = [] if cell.unit else [each.amounts[0] for each in dates if each.line == cell.line]
    for one, other in product(own, (*own, *(day.amounts[0] for day in days))):
        yield from (abs(one - other), abs(one - other) / _WEEK)


def _runs(cell: _Cell, told: Sequence[_Cell]) -> tuple[list[_Cell], list[_Cell]]:
    """Return the other known numbers of the cell's line, and the other known numbers of the cell's column."""
    line = [each for each in told if each.line == cell.line and each.number.start != cell.number.start]
    return line, [each for each in told if each.column == cell.column and each.line != cell.line]


def _sums(run: Sequence[_Cell]) -> Iterator[list[Decimal]]:
    """Return the sums and the means of the first two, three … numbers of a run that have the unit of the first one.
    Both the first and the last reading of each number are used."""
    run = [each for each in run if each.unit == run[0].unit]
    for reading in (0, -1):
        totals = enumerate(accumulate(each.amounts[reading] for each in run), 1)
        yield [value for count, total in totals if count > 1 for value in (total, total / count)]


def _totals(shown: Iterable[_Cell], output: str) -> Iterator[Decimal]:
    """Return the sum and the mean of every column of an output, with and without the column's first number, because
    a heading may be a number. The same is done for those numbers of a column that follow the same character,
    because other text may stand below a table."""
    columns = defaultdict[tuple[object, ...], list[_Cell]](list)
    for cell in shown:
        columns[cell.column, cell.unit].append(cell)
        columns[cell.column, cell.unit, output[: cell.number.start][-1:].strip()].append(cell)
    sums = (each for run in columns.values() for each in (*_sums(run), *_sums(run[1:])))
    yield from (value for each in sums for value in each[-2:])


def _of_two(a: _Cell, b: _Cell, *, percent: bool) -> Iterator[Decimal]:
    """Return values that can be derived from two numbers in this order. If a percentage is wanted, these are a
    share and a change in per cent, otherwise plain numbers. Sums and differences need equal units. A percentage may
    be used as a factor, as a surcharge or as a discount."""
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
    """Return the time from `start` to `end`, which may include midnight. It is given as a total, and split into
    hours, minutes and seconds. Also return the sum of both times."""
    took = (end - start + _DAY) % _DAY
    minutes, seconds = divmod(took, _MINUTE)
    yield from (took, took / _MINUTE, took / _HOUR, minutes, seconds, *divmod(minutes, _MINUTE), start + end)


def _cells(text: str, *, apart: bool = False) -> Iterator[_Cell]:
    """Return the numbers, times and dates of a text. Parts of a date are no quantities. If `apart` is true (for an
    output), dates are left out, and commas and blanks separate numbers."""
    plain, before = plain_digits(text), Counter[tuple[int, int]]()
    numbers = [*numbers_in(blanked(TIME, blanked(DATE, plain)), apart=apart), *times_in(plain)]
    numbers += () if apart else days_in(plain)
    for number in sorted(numbers, key=lambda each: each.start):
        line, begins = plain.count("\n", 0, number.start), plain.rfind("\n", 0, number.start)
        bars = plain.count("|", begins + 1, number.start)
        before[line, bars] += DATE.fullmatch(number.text) is None
        if amounts := tuple(filter(None, number.amounts)):
            unit = _CLOCK if TIME.fullmatch(number.text) else number.units if number.units != _BYTE else ()
            unit = _DATED if DATE.fullmatch(number.text) else unit
            yield _Cell(number, unit, amounts, line, (bars, before[line, bars]))
