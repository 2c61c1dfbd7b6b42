"""Numbers in a text, read by value: any script's digits, any convention of separators, percent, sizes in bytes.

    "1.234,5"  "1,234.5"  "1 234.5"  ──► 1234.5        "25 %" ──► 25 or 0.25        "12 KB" ──► 12000 or 12288 bytes

A literal that can be read in two ways ("1.234") has two values, and equals whatever equals one of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

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
_SEPARATOR = re.compile(r"\D")
_POINT = re.compile(r"[.,]")
_POWERS = {letter: power for power, letter in enumerate("KMGTPE", 1)}
_PRECISE = 100
"""A whole number of so many digits may be a rounded one of a larger scale."""
_SCALES = tuple(Decimal(10) ** power for power in (3, 4, 6, 8, 9))
"""What a scale that is written beside a number multiplies it by, in whatever language it is written."""


@dataclass(frozen=True, slots=True)
class Number:
    """One numeral: its place, its text, its values as they may be read; `sizes` in bytes when a unit follows.

    `parts`: the runs of digits of a row such as a date or a version.
    """

    start: int
    end: int
    text: str
    values: tuple[Decimal, ...]
    sizes: tuple[Decimal, ...] = ()
    parts: tuple[str, ...] = ()

    @property
    def is_zero(self) -> bool:
        """Whether it says nothing but zero."""
        return bool(self.values) and not any(self.values)


def plain_digits(text: str) -> str:
    """The text with every script's digits as 0 to 9 and every number separator as ASCII; as long as before."""
    return text if text.isascii() else "".join(map(_plain, text))


def _plain(character: str) -> str:
    if character.isascii():
        return character
    digit = unicodedata.decimal(character, None)
    return _SEPARATORS.get(character, character) if digit is None else str(digit)


def numbers_in(text: str) -> Iterator[Number]:
    """Every numeral of the text, in order."""
    for found, _ in zip(_NUMBER.finditer(plain_digits(text)), range(_MOST), strict=False):
        digits = found["digits"]
        if len(digits) > _LONGEST:
            continue
        values = tuple(_readings(digits, found["exponent"] or ""))
        sizes: tuple[Decimal, ...] = ()
        prefix = found["prefix"] or found["bare"]
        if prefix:
            power = _POWERS[prefix.upper()]
            sizes = tuple(value * base**power for value in values for base in (Decimal(1000), Decimal(1024)))
        elif found["bytes"]:
            sizes = values
        elif found["percent"]:
            values = (*values, *(value.scaleb(-2) for value in values))
        pieces = tuple(_SEPARATOR.split(digits))
        row = bool(pieces[1:]) and (not values or " " in digits)
        yield Number(found.start(), found.end(), found.group().strip(), values, sizes, pieces if row else ())


def _readings(digits: str, exponent: str) -> Iterator[Decimal]:
    """The values that a literal of digits and separators may have; none for a dotted row such as a version."""
    bare = digits.translate({ord(each): None for each in " '_"})
    points, commas = bare.count("."), bare.count(",")
    if points and commas:
        decimal = max(".,", key=bare.rfind)
        thousands = "," if decimal == "." else "."
        if bare.count(decimal) == 1:
            yield from _value(bare.replace(thousands, "").replace(decimal, "."), exponent)
        return
    if points + commas == 1:
        yield from _value(bare.replace(",", "."), exponent)
    if points + commas and _grouped(_POINT.split(bare)):
        yield from _value(_POINT.sub("", bare), exponent)
    elif not points + commas:
        yield from _value(bare, exponent)


def _grouped(groups: Sequence[str]) -> bool:
    """Whether these are groups of thousands, in threes or (India) in twos with three at the end."""
    first, *middle, last = groups
    if not 1 <= len(first) <= 3 or len(last) != 3 or (first.startswith("0") and len(groups) > 1):
        return False
    return all(len(each) == 3 for each in middle) or (len(first) <= 2 and all(len(each) == 2 for each in middle))


def _value(literal: str, exponent: str) -> Iterator[Decimal]:
    try:
        yield Decimal(literal + exponent)
    except InvalidOperation:
        return


def same(said: Number, shown: Number) -> bool:
    """Whether what is said is what was shown, after formatting, rounding, percent, scale and units of size."""
    if said.sizes:
        pairs = (
            ((said.sizes, shown.sizes),)
            if shown.sizes
            else ((said.sizes, shown.values), (said.values, shown.values))
        )
        return any(_equal(one, other) for ones, others in pairs for one in ones for other in others)
    return _any_equal(said.values, shown.values) or _any_equal(said.values, shown.sizes)


def _any_equal(said: Sequence[Decimal], shown: Sequence[Decimal]) -> bool:
    return any(_equal(one, other) or _scaled(one, other) for one in said for other in shown)


def _equal(said: Decimal, shown: Decimal) -> bool:
    """Equal, or what was shown rounded to the places that are said (1200 for 1234: to its zeros)."""
    if said == shown:
        return True
    short = said.normalize()
    places = [_exponent(said)]
    if len(short.as_tuple().digits) > 1 and _exponent(short) > 0:
        places.append(_exponent(short))
    return bool(said) and any(said in _rounded(shown, place) for place in places)


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


def _scaled(said: Decimal, shown: Decimal) -> bool:
    """Whether one is the other in thousands, myriads, millions …; rounded only where enough digits are said."""
    if not said or not shown:
        return False
    for scale in _SCALES:
        if said * scale == shown or (shown >= 1 and said == shown * scale):
            return True
        if (_exponent(said) < 0 or abs(said) >= _PRECISE) and _equal(said, shown / scale):
            return True
    return False
