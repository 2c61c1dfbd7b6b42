"""Parse numbers in any script and separator, with percent, bytes and rounding.

    "1.234,5"  "1,234.5"  "1 234.5"  ──► 1234.5        "25 %" ──► 25 or 0.25        "12 KB" ──► 12000 or 12288 bytes

A literal that can be read in two ways ("1.234") has two values, and equals a number that equals either of them. A
numeral in an answer may be rounded, so it matches a range of values.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import chain, islice, product

_LONGEST = 40  # a longer literal (in characters) is no quantity
_MOST = 4_000  # numbers of one text that are read
_SEPARATORS = dict(zip("\u00a0\u202f\u2009\u2019\u066b\u066c\uff05\u066a", "   '.,%%", strict=True))
_POWER, _DIGIT = 0xE000, 0xE100  # private code points that replace signs for powers of ten and for digits
_ALONE = r"\d+(?:[.'_]\d+)*"
_GROUPED = r"(?:\d{1,3}(?:[ ]\d{3}(?!\d))+|\d+)(?:[.,'_]\d+)*"
_BEHIND = (
    r"(?:(?P<signs>[ ]?[\ue001-\ue00c](?:[.,'_]?\d|[\ue001-\ue00c])*)|(?P<exponent>[eE][-+]?\d{1,3}(?!\w))?"
    r"(?:\s?(?P<unit>%|(?:[kKMGTPE]i?B|B|bytes?)\b)|(?P<prefix>[KMGTP])(?!\w))?)"
)
_AHEAD = r"(?P<ahead>(?<![\w)])%)?(?<![\w.])"  # Turkish and Basque put the sign first
# Grouped thousands never begin within a date, a time or a range.
_NUMBER = re.compile(rf"{_AHEAD}(?P<digits>(?<=\d[-/:]){_ALONE}|{_GROUPED}){_BEHIND}")
_APART = re.compile(rf"{_AHEAD}(?P<digits>{_ALONE}){_BEHIND}")
# Digits are grouped in threes, or in India in twos with three at the end.
_THOUSANDS = re.compile(r"[1-9]\d{0,2}([.,])\d{3}(?:\1\d{3})*|[1-9]\d?([.,])(?:\d\d\2)*\d{3}")
_PART = re.compile(r"([\d.,'_]*)([\ue001-\ue00c]?)")
_WRITTEN = re.compile(r"[\ue001-\ue109]+")
# A duration as the shell's `time` prints it, a time of day, or a number of minutes and seconds (24:10).
TIME = re.compile(
    r"(?<![\w:.])(?:(?:(\d+)h)?(\d+)m(\d+(?:\.\d+)?)s(?!\w)|([0-5]?\d):([0-5]\d)(?::([0-5]\d))?(?!:?\d))"
)
DATE = re.compile(r"(?<!\d)\d{4}-\d\d(-\d\d)?(?!\d)")
_MYRIAD = 4  # from this power of ten on, a sign multiplies everything before it
_PRECISE = 10  # least whole number that may be a rounded number of a larger scale
_ONE = Decimal(1)
_HALF_DAY = 43_200
PERCENT = (Decimal("0.01"),)
# The factors of each unit. The prefixes of bytes have a decimal and a binary factor.
_UNITS = {"%": PERCENT, "B": (_ONE,)} | {
    letter: (Decimal(1000) ** power, Decimal(1024) ** power) for power, letter in enumerate("KMGTPE", 1)
}
# A command-line option that sets the unit of size in which columns are printed.
_UNIT_OPTION = re.compile(r"(?<!\S)-[a-zA-Z]*?(?P<prefix>[kKmMgG])[a-zA-Z]*(?!\S)")
# Programs that print sizes in such a unit as bare numbers. Without an option, the unit is KiB.
_MEASURE = frozenset({"shell:du", "shell:df", "shell:free"})
# The factors of scales that are written next to a number, in any language.
_SCALES = tuple(Decimal(10) ** power for power in (3, 4, 6, 8, 9))

Span = tuple[Decimal, Decimal]  # the least and the largest value that a numeral may mean


@dataclass(frozen=True, slots=True)
class Number:
    """A numeral with its position, its text and the values that it may have. `units` are the factors that its unit
    may mean (decimal and binary bytes, or a hundredth). `parts` contains the runs of digits if the numeral is a row
    such as a version."""

    start: int
    end: int
    text: str
    values: tuple[Decimal, ...]
    units: tuple[Decimal, ...] = ()
    parts: tuple[str, ...] = ()

    @property
    def amounts(self) -> tuple[Decimal, ...]:
        """Return the possible values: in bytes if the number is a size, and as a fraction if it is a percentage."""
        return tuple(value * unit for value, unit in product(self.values, self.units or (_ONE,)))

    def spans(self, units: Iterable[Decimal] = (_ONE,), *, zeros: bool = False, least: int = 0) -> Iterator[Span]:
        """Return the ranges of the values that round to this number in these units. A range extends to both sides
        by half of the number's last place. If `zeros` is true and the number is whole, its last place is the last
        one that is not zero (so 1200 may stand for 1234). Values are never rounded to 0, or to a whole number below
        `least`."""
        for value, unit in product(self.values, units):
            whole = int(value.as_tuple().exponent) >= 0
            place = int((value.normalize() if zeros and whole else value).as_tuple().exponent)
            half = Decimal(5).scaleb(place - 1) if value and not (whole and value < least) else Decimal(0)
            yield (value - half) * unit, (value + half) * unit


def plain_digits(text: str) -> str:
    """Return a text of the same length, in which the digits of every script are replaced by 0 to 9 and number
    separators by ASCII."""
    return text if text.isascii() else "".join(map(_plain, text))


def parted(text: str) -> str:
    """Return a text of the same length, in which every letter of a script without capitals is replaced by a bar,
    because such scripts need no space between a word and a number. A letter that is a number, as in Han, becomes a
    private code point."""
    return text if text.isascii() else "".join(map(_bar, text))


@cache
def _plain(character: str) -> str:
    return _SEPARATORS.get(character, str(unicodedata.decimal(character, character)))


@cache
def _bar(character: str) -> str:
    if unicodedata.category(character) not in ("Lo", "Nl"):
        return character
    first, *zeros = f"{unicodedata.numeric(character, 0.5):.15g}"
    if set(zeros) <= {"0"} and (first == "1" or not zeros):
        return chr(_POWER + len(zeros) if zeros else _DIGIT + int(first))
    return "|"


def numbers_in(text: str, *, apart: bool = False) -> Iterator[Number]:
    """Return every numeral of the text, in order. If `apart` is true, a comma or a blank separates numbers
    (1,4.50,2) and does not mark thousands. In a text that was shown to the model, both readings are possible."""
    plain = plain_digits(text)
    numbers = (_number(plain, each) for each in (_APART if apart else _NUMBER).finditer(parted(plain)))
    yield from islice(filter(None, numbers), _MOST)


def _number(plain: str, found: re.Match[str]) -> Number | None:
    digits, (start, end) = found["digits"], found.span()
    values = tuple(_readings(digits, found["exponent"] or "")) if len(digits) <= _LONGEST else ()
    if found["signs"]:
        values = tuple(_composed((digits + found["signs"]).replace(" ", "")))
    units = _UNITS.get((found["unit"] or found["prefix"] or found["ahead"] or " ")[0].upper(), ())
    parts = tuple(re.split(r"\D", digits)) if not values or " " in digits else ()
    row = parts if parts[1:] else ()
    return Number(start, end, plain[start:end].strip(), values, units, row) if values or row else None


def columns_in(output: str, command: str, programs: Collection[str]) -> tuple[list[Number], bool]:
    """Return the numbers of an output as sizes, if an option of the command sets the unit of its columns. The
    second value says whether the bare numbers of the output are certainly sizes and nothing else."""
    measures = not _MEASURE.isdisjoint(programs)
    prefixes = [option["prefix"].upper() for option in _UNIT_OPTION.finditer(command)]
    if measures and not prefixes and " -" not in command:
        prefixes = ["K"]
    units = tuple(dict.fromkeys(unit for prefix in prefixes for unit in _UNITS[prefix]))
    numbers = [replace(each, units=each.units or units) for each in numbers_in(output)] if units else []
    return numbers, measures and bool(units)


def written_in(text: str) -> Iterator[Number]:
    """Return the numerals of scripts whose signs are numbers instead of digits, such as Han. Use this only for
    evidence, because in an answer such a sign may be part of a word."""
    for found in _WRITTEN.finditer(parted(text)):
        signs = "".join(sign if ord(sign) < _DIGIT else str(ord(sign) - _DIGIT) for sign in found.group())
        yield Number(*found.span(), found.group(), tuple(_composed(signs)))


def read_in(shown: str) -> Iterator[Number]:
    """Return every numeral and every time in a shown text, in every possible reading."""
    yield from chain(numbers_in(shown), numbers_in(shown, apart=True), written_in(shown), times_in(shown))


def _composed(signs: str) -> Iterator[Decimal]:
    """Return the values of a sequence in which literals and signs of powers alternate. A power multiplies the
    literal before it; from ten thousand on, it multiplies everything before it."""
    parts = _PART.findall(signs)[:-1]
    for literals in product(*(tuple(_readings(digits, "")) or (None,) for digits, _ in parts)):
        total = section = Decimal(0)
        for literal, (_, sign) in zip(literals, parts, strict=True):
            power = ord(sign) - _POWER if sign else 0
            amount = Decimal(not section or power < _MYRIAD) if literal is None else literal
            if power < _MYRIAD:
                section += amount.scaleb(power)
            else:
                total, section = total + (section + amount).scaleb(power), Decimal(0)
        yield total + section


def times_in(text: str) -> Iterator[Number]:
    """Return in seconds the durations such as 1m30.5s and the times of day in a text. A time of day is read on a
    24-hour and on a 12-hour clock, so 2:30 also means 14:30."""
    for found in TIME.finditer(plain_digits(text)):
        parts = tuple(filter(None, found.groups()))
        hours, minutes, seconds = (Decimal(found[part] or found[part + 3] or 0) for part in (1, 2, 3))
        took = hours * 3600 + minutes * 60 + seconds
        clocks = (took, (took + _HALF_DAY) % (2 * _HALF_DAY)) if hours < 24 else (took,)
        row = parts if found[5] is not None else ()
        yield Number(*found.span(), found.group(), clocks if row else (took,), (), row)


def days_in(text: str) -> Iterator[Number]:
    """Return the ISO dates of a text, as days since 0001-01-01 (which is day 1)."""
    for found in DATE.finditer(plain_digits(text)):
        with suppress(ValueError):
            day = Decimal(date.fromisoformat(found.group()).toordinal())
            yield Number(*found.span(), found.group(), (day,), (), tuple(found.group().split("-")))


def _readings(digits: str, exponent: str) -> Iterator[Decimal]:
    """Return the values that a literal of digits and separators may have. A row such as a version has none."""
    bare = digits.translate({ord(each): None for each in " '_"})
    mark = max(".,", key=bare.rfind)
    whole, marked, part = bare.rpartition(mark)
    thousands = "," if mark == "." else "."
    if not marked:
        yield from (Decimal(bare + exponent),) if bare else ()
    elif mark not in whole and (thousands not in whole or _THOUSANDS.fullmatch(whole)):
        yield Decimal(f"{whole.replace(thousands, '')}.{part}{exponent}")
    if marked and thousands not in whole and _THOUSANDS.fullmatch(bare):
        yield Decimal(bare.replace(mark, "") + exponent)


class Shown:
    """An index of the numbers in the evidence, in which numbers of an answer are looked up."""

    def __init__(self, numbers: Iterable[Number]) -> None:
        plain, sized, sizes = set[Decimal](), set[Decimal](), set[Decimal]()
        for number in numbers:
            (sized if number.units else plain).update(number.values)
            sizes.update(value * unit for value, unit in product(number.values, number.units))
        self._plain, self._sizes, self._all = sorted(plain), sorted(sizes), sorted(plain | sized | sizes)

    def has(self, said: Number) -> bool:
        """Return whether the number was shown. It may be formatted, rounded, written as a percentage, or given in
        another scale or unit of size."""
        spans = said.spans((_ONE, *said.units), zeros=True)
        if said.units:
            return bool(_between(self._plain, spans) or _between(self._sizes, said.spans(said.units, zeros=True)))
        scales = () if said.parts else _SCALES  # a time of day has none
        down = ((value / scale, value / scale) for value, scale in product(said.values, scales) if value >= scale)
        return bool(_between(self._all, chain(spans, said.spans(scales, least=_PRECISE), down)))

    def meant(self, said: Number) -> tuple[Decimal, ...]:
        """Return the number's values (in bytes if it is a size) and the shown numbers that it may be rounded
        from."""
        return tuple(dict.fromkeys((*said.amounts, *_between(self._all, said.spans(said.units or (_ONE,))))))


def _between(shown: Sequence[Decimal], spans: Iterable[Span]) -> list[Decimal]:
    """Return the values of a sorted sequence that lie in one of these ranges."""
    return [value for low, high in spans for value in shown[bisect_left(shown, low) : bisect_right(shown, high)]]
