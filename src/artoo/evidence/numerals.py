"""Numbers in a text, read by value: any script's digits, any convention of separators, percent, sizes in bytes.

    "1.234,5"  "1,234.5"  "1 234.5"  ──► 1234.5        "25 %" ──► 25 or 0.25        "12 KB" ──► 12000 or 12288 bytes
    "64" and a sign that is a power of ten, as Han has them ──► that power of ten times 64

A literal that can be read in two ways ("1.234") has two values, and equals whatever equals one of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import cache
from itertools import islice, product

_LONGEST = 24
"""Digits of a literal beyond which it is no quantity."""
_MOST = 4_000
"""Numbers of one text that are read."""
_SEPARATORS = {
    "\u00a0": " ",
    "\u202f": " ",
    "\u2009": " ",
    "\u2019": "'",
    "\u066b": ".",
    "\u066c": ",",
    "\uff05": "%",
}
_NUMBER = re.compile(
    r"(?<![\w.])(?P<digits>\d+(?:[.,'_]\d+|[ ]\d{3}(?!\d))*)(?P<exponent>[eE][-+]?\d{1,3}(?!\w))?"
    r"(?:\s?(?P<percent>%)|\s?(?P<prefix>[kKMGTPE])(?:i?B)\b|\s?(?P<bytes>B|bytes?)\b|(?P<bare>[KMGTP])(?!\w))?"
)
_DURATION = re.compile(r"(?<!\w)(?:(\d+)h)?(\d+)m(\d+(?:\.\d+)?)s(?!\w)")
"""As `time` prints one."""
_SEPARATOR = re.compile(r"\D")
_APART = re.compile(r"[ ,]")
_IN_ROW = re.compile(r"\d[-/:]")
"""What comes before a numeral that belongs to a date, a time or a range: thousands do not begin there."""
_POINT = re.compile(r"[.,]")
_POWERS = {letter: power for power, letter in enumerate("KMGTPE", 1)}
_MYRIAD = 10_000
_MOST_SIGNS = 3
_SIGNS = frozenset(10**power for power in range(1, 13))
"""What a sign that stands behind digits can multiply them by, and how many of them are read."""
_PRECISE = 10
"""A whole number from here on may be a rounded one of a larger scale."""
_ONE = Decimal(1)
_UNIT_OPTION = re.compile(r"(?<!\S)-[a-zA-Z]*?(?P<prefix>[kKmMgG])[a-zA-Z]*(?!\S)")
"""A command line's option that gives its columns a unit of size."""
_SCALES = tuple(Decimal(10) ** power for power in (3, 4, 6, 8, 9))
"""What a scale that is written beside a number multiplies it by, in whatever language it is written."""


@dataclass(frozen=True, slots=True)
class Number:
    """One numeral: its place, its text, its values as they may be read; what a unit of size behind it is in bytes.

    `parts`: the runs of digits of a row such as a date or a version. `unscaled`: the values without the
    scale, where one is written as a sign of its own behind the digits.
    """

    start: int
    end: int
    text: str
    values: tuple[Decimal, ...]
    units: tuple[Decimal, ...] = ()
    parts: tuple[str, ...] = ()
    unscaled: tuple[Decimal, ...] = ()


def plain_digits(text: str) -> str:
    """The text with every script's digits as 0 to 9 and every number separator as ASCII; as long as before."""
    return text if text.isascii() else "".join(map(_plain, text))


def parted(text: str) -> str:
    """The text with a bar for every letter of a script without capitals: such scripts need no space between a word
    and a number. As long as before.
    """
    return text if text.isascii() else "".join(map(_bar, text))


@cache
def _plain(character: str) -> str:
    digit = None if character.isascii() else unicodedata.decimal(character, None)
    return _SEPARATORS.get(character, character) if digit is None else str(digit)


@cache
def _bar(character: str) -> str:
    return "|" if unicodedata.category(character) == "Lo" else character


def numbers_in(text: str, *, rows: bool = False) -> Iterator[Number]:
    """Every numeral of the text, in order.

    `rows`: what a comma or a blank may set apart (1,4.50,2) by itself as well: in what was shown nobody can tell a
    row from the mark of thousands.
    """
    plain = plain_digits(text)
    yield from islice(_composed_numbers(_every_number(plain, rows=rows)), _MOST)


def _composed_numbers(numbers: Iterable[Number]) -> Iterator[Number]:
    """The same; what follows a scale that is written as a sign, without a blank, is the rest of one number."""
    before: Number | None = None
    for number in numbers:
        if before is not None and before.unscaled and before.end == number.start and number.values:
            values = tuple(one + other for one, other in product(before.values, number.values))
            before = replace(number, start=before.start, text=before.text + number.text, values=values, parts=())
            continue
        if before is not None:
            yield before
        before = number
    if before is not None:
        yield before


def _every_number(plain: str, *, rows: bool) -> Iterator[Number]:
    for found in _NUMBER.finditer(parted(plain)):
        digits, start = found["digits"], found.start()
        pieces = _APART.split(digits)
        whole = len(pieces) == 1 or (
            len(digits) <= _LONGEST and not _IN_ROW.search(plain, max(0, start - 2), start)
        )
        if whole:
            yield from _number(plain, found, start, digits)
        for piece in pieces if rows or not whole else ():
            last = start + len(piece) == found.end("digits")
            yield from _number(plain, found if last else None, start, piece) if len(pieces) > 1 else ()
            start += len(piece) + 1


def _number(plain: str, units: re.Match[str] | None, start: int, digits: str) -> Iterator[Number]:
    """What stands at this place, with the `units` behind it; nothing where it is too long for a quantity."""
    if len(digits) > _LONGEST:
        return
    unit = units.groupdict() if units is not None else dict[str, str | None]()
    end = units.end() if units is not None else start + len(digits)
    values = tuple(_readings(digits, unit.get("exponent") or ""))
    meant = unscaled = tuple[Decimal, ...]()
    prefix = unit.get("prefix") or unit.get("bare")
    if prefix:
        meant = _in_bytes(prefix)
    elif unit.get("bytes"):
        meant = (_ONE,)
    elif unit.get("percent"):
        values = (*values, *(value.scaleb(-2) for value in values))
    elif units is not None and not plain.isascii():
        scale, end = _scale_at(plain, end)
        if scale > 1:
            unscaled, values = values, tuple(value * scale for value in values)
    parts = tuple(_SEPARATOR.split(digits))
    row = bool(parts[1:]) and (not values or " " in digits)
    yield Number(start, end, plain[start:end].strip(), values, meant, parts if row else (), unscaled)


def columns_in(output: str, command: str) -> Iterator[Number]:
    """The bare numbers of an output as sizes, where an option of the command names the unit of its columns."""
    for option in _UNIT_OPTION.finditer(command):
        for number in numbers_in(output):
            if number.values and not number.units:
                yield replace(number, units=_in_bytes(option["prefix"]))


def _in_bytes(prefix: str) -> tuple[Decimal, ...]:
    """What a prefix means, decimal and binary."""
    power = _POWERS[prefix.upper()]
    return Decimal(1000) ** power, Decimal(1024) ** power


def _scale_at(text: str, place: int) -> tuple[int, int]:
    """The scale that signs at this place of a text write, perhaps behind a space, and where they end; else 1."""
    scale, start = 1, place + (text[place : place + 1] == " ")
    for end in range(start, min(start + _MOST_SIGNS, len(text))):
        value = unicodedata.numeric(text[end], 0) if unicodedata.category(text[end]) == "Lo" else 0
        if value not in _SIGNS:
            return (scale, end) if scale > 1 else (1, place)
        scale *= int(value)
    return scale, min(start + _MOST_SIGNS, len(text))


def written_in(text: str) -> Iterator[Number]:
    """Numerals of scripts whose signs are numbers themselves and no digits, such as Han. Only to look others up in:
    in an answer such a sign may be part of a word.
    """
    if text.isascii():
        return
    start, signs = 0, list[int]()
    for place, character in enumerate(f"{text} "):
        value = None if character.isascii() or character.isdecimal() else unicodedata.numeric(character, None)
        if value is not None and value == int(value):
            start, signs = (start if signs else place), [*signs, int(value)]
        elif signs:
            yield Number(start, place, text[start:place], (Decimal(_composed(signs)),))
            signs = []


def _composed(signs: Sequence[int]) -> int:
    """The value of such signs: units multiply what stands before them, bare signs follow each other as digits."""
    total = section = digits = 0
    for sign in signs:
        if sign >= _MYRIAD:
            total, section, digits = total + (section + digits or 1) * sign, 0, 0
        elif sign >= 10:
            section, digits = section + (digits or 1) * sign, 0
        else:
            digits = digits * 10 + sign
    return total + section + digits


def durations_in(text: str) -> Iterator[Number]:
    """Durations of the form 1m30.5s, in seconds."""
    for found in _DURATION.finditer(text):
        hours, minutes, seconds = (Decimal(part or 0) for part in found.groups())
        yield Number(found.start(), found.end(), found.group(), (hours * 3600 + minutes * 60 + seconds,))


def _readings(digits: str, exponent: str) -> Iterator[Decimal]:
    """The values that a literal of digits and separators may have; none for a dotted row such as a version."""
    bare = digits.translate({ord(each): None for each in " '_"})
    points, commas = bare.count("."), bare.count(",")
    if points and commas:
        decimal = max(".,", key=bare.rfind)
        thousands = "," if decimal == "." else "."
        whole, _, part = bare.partition(decimal)
        if decimal not in part and _grouped(whole.split(thousands)):
            yield Decimal(bare.replace(thousands, "").replace(decimal, ".") + exponent)
        return
    if points + commas == 1:
        yield Decimal(bare.replace(",", ".") + exponent)
    if points + commas and _grouped(_POINT.split(bare)):
        yield Decimal(_POINT.sub("", bare) + exponent)
    elif not points + commas:
        yield Decimal(bare + exponent)


def _grouped(groups: Sequence[str]) -> bool:
    """Whether these are groups of thousands, in threes or (India) in twos with three at the end."""
    first, *middle, last = groups
    if not 1 <= len(first) <= 3 or len(last) != 3 or (first.startswith("0") and len(groups) > 1):
        return False
    return all(len(each) == 3 for each in middle) or (len(first) <= 2 and all(len(each) == 2 for each in middle))


class Shown:
    """Numbers that were shown, to be asked whether one that is said is among them. Built once, asked often."""

    def __init__(self, numbers: Iterable[Number]) -> None:
        plain: set[Decimal] = set()
        sized: set[Decimal] = set()
        self._sizes: set[Decimal] = set()
        for number in numbers:
            (sized if number.units else plain).update(number.values)
            self._sizes.update(value * unit for value, unit in product(number.values, number.units))
        self._plain = plain
        self._values = plain | sized
        self._rounded: dict[tuple[int, int, Decimal], frozenset[Decimal]] = {}

    def equals(self, said: Number) -> bool:
        """Whether it is one of these values, perhaps rounded to its decimals, and never to its zeros."""
        return any(
            value in self._at(self._values, _exponent(value), unit)
            for value, unit in product(said.values, (_ONE, *said.units))
        )

    def meant(self, said: Number) -> tuple[Decimal, ...]:
        """What it says, and what was shown and is said by it rounded, in its unit."""
        shown = product(self._plain | self._sizes if said.units else self._values, said.units or (_ONE,))
        near = (
            (value, one / unit) for (one, unit), value in product(shown, said.values) if abs(one / unit - value) < 1
        )
        exact = (one for value, one in near if value in _rounded(one, _exponent(value)))
        return tuple(dict.fromkeys((*said.values, *exact)))

    def has(self, said: Number) -> bool:
        """Whether it was shown, after formatting, rounding, percent, scale and units of size."""
        if said.units:
            plain = self._equal(self._plain, said.values, (_ONE, *said.units))
            return plain or self._equal(self._sizes, said.values, said.units)
        return (
            self._equal(self._values, said.values)
            or self._equal(self._plain, said.unscaled)
            or self._equal(self._sizes, said.values)
            or any(self._scaled(value) for value in said.values)
        )

    def _equal(self, shown: set[Decimal], said: Iterable[Decimal], units: tuple[Decimal, ...] = (_ONE,)) -> bool:
        """Equal, or what was shown rounded to the places that are said (1200 for 1234: to its zeros)."""
        return any(
            value * unit in shown
            or (bool(value) and any(value in self._at(shown, place, unit) for place in _places(value)))
            for value, unit in product(said, units)
        )

    def _scaled(self, said: Decimal) -> bool:
        """Whether it is shown in thousands, myriads, millions …; rounded only where enough digits are said."""
        enough = _exponent(said) < 0 or abs(said) >= _PRECISE
        return bool(said) and any(
            said * scale in self._values
            or (said >= scale and said / scale in self._values)
            or (enough and said in self._at(self._values, _exponent(said), scale))
            for scale in _SCALES
        )

    def _at(self, shown: set[Decimal], place: int, scale: Decimal = _ONE) -> frozenset[Decimal]:
        """What was shown, in this scale, rounded to a place."""
        key = (id(shown), place, scale)
        if key not in self._rounded:
            self._rounded[key] = frozenset(one for value in shown for one in _rounded(value / scale, place))
        return self._rounded[key]


def _places(said: Decimal) -> tuple[int, ...]:
    """The places that a number may have been rounded to: its decimals, or its zeros at the end."""
    short = said.normalize()
    zeros = _exponent(short) > 0
    return (_exponent(said), _exponent(short)) if zeros else (_exponent(said),)


def _rounded(value: Decimal, place: int) -> tuple[Decimal, ...]:
    """To a place in both customs: a half goes up, or to the even neighbour."""
    unit = Decimal(1).scaleb(place)
    try:
        return value.quantize(unit, ROUND_HALF_UP), value.quantize(unit)
    except InvalidOperation:
        return ()


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0
