"""Find known values in columns, as `xxd`, `od` or `base64 | cat -n` show them: few letters with other text between.

No format is known here. A text is read as letters, among which a value stands as it is, backwards, in base64 or in
base32, and as numbers in base 2, 8, 10 and 16, those of several bytes in both orders; pieces of a value that go on
where the one before ended, with little between them, are the value.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from artoo.redaction.coded import SHORTEST, in_groups
from artoo.redaction.replacing import Span
from artoo.redaction.search import Search

_ESCAPE = re.compile(rb"\\{1,7}(?:u[0-9A-Fa-f]{4}|[^0-9])", re.DOTALL)
_NUMBER = re.compile(rb"(?<![0-9A-Za-z])(?:0?[xX])?([0-9A-Fa-f]{2,256})(?![0-9A-Za-z])")
_DIGITS = bytes(97 if chr(one) in "0123456789abcdefx" else 32 for one in range(256))
_RUN = b"a" * 16
"""So many digits with nothing but blanks and the like between them: no line of a dump has fewer."""
_LOWER = bytes(range(256)).lower()
_NO_LETTERS = bytes(one for one in range(256) if not chr(one).isascii() or not chr(one).isalpha())
_BYTES_OF_OCTAL = {3: 1, 6: 2, 11: 4, 22: 8}
"""How many bytes a number with so many octal digits has: `od` writes them all."""
_BYTES_OF_DECIMAL = {**dict.fromkeys(range(1, 4), 1), 4: 2, 5: 2, **dict.fromkeys(range(6, 11), 4)}
"""A longer number has eight bytes, or as many as it needs."""

_PIECE = 4
_BETWEEN_LETTERS, _BETWEEN_NUMBERS = 96, 32
"""The most that lies between two pieces: the other columns of a line with 32 bytes."""

_WINDOW = 8
"""So many letters of a value, wherever in it, may be a piece of it in a column."""
_STRIDE = 4
"""A piece of eleven letters holds one of the windows that begin so far apart."""
_LEAST_BARE = 12

Order = Literal["big", "little"]


def most_left(length: int) -> int:
    """Return how many letters of a value make it possible to guess the rest."""
    return max(SHORTEST, length * 3 // 5 + 1)


@dataclass(slots=True)
class _Reading:
    """A text as it reads in one way. `begins`: where each run, contiguous in the text, starts in `said`. `runs`:
    its place in the text and its number of bytes."""

    gap: int
    order: Order = "big"
    whole: bool = False
    """Whether no byte of a run has a place of its own in the text: a decimal number of several bytes."""
    said: bytearray = field(default_factory=bytearray)
    begins: list[int] = field(default_factory=list[int])
    runs: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])

    def add(self, said: bytes, start: int, end: int) -> None:
        self.begins.append(len(self.said))
        self.runs.append((start, end, len(said)))
        self.said += said

    def place(self, number: int) -> Span:
        """Return the position in the text of the byte with that number."""
        run = bisect_right(self.begins, number) - 1
        start, end, count = self.runs[run]
        if self.whole:
            return start, end
        width, at = (end - start) // count, number - self.begins[run]
        first = start + width * (at if self.order == "big" else count - 1 - at)
        return first, first + width


class _Sought:
    """The forms, and how their pieces are found; made for the first text that is read."""

    def __init__(self, forms: tuple[bytes, ...]) -> None:
        self.forms = forms

    @cached_property
    def seeds(self) -> tuple[Search, list[list[tuple[int, int]]]]:
        """Return a search for every piece, with the forms that each piece belongs to and its letter there."""
        whose: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
        for number, form in enumerate(self.forms):
            for first in range(len(form) - _PIECE + 1):
                whose[form[first : first + _PIECE]].append((number, first))
        return Search(list(whose)), list(whose.values())


@dataclass(frozen=True, slots=True)
class Columns:
    """The values to find as letters and as numbers. `windows` and `bare` are hints that some of it may be in
    columns: pieces of a text's small letters without blanks, and of these without what is no letter: numbers of
    lines, and marks of arrows and bars."""

    letters: _Sought
    numbers: _Sought
    windows: tuple[bytes, ...]
    bare: tuple[bytes, ...]

    @classmethod
    def of(cls, secrets: Iterable[bytes], blanks: bytes) -> Columns:
        """Return the columns of these values. `blanks` are bytes that may be between any two letters."""
        whole = tuple(sorted(one for one in secrets if len(one) >= SHORTEST))
        plain = dict.fromkeys(_small(one, blanks) for one in whole)
        other = dict.fromkeys(
            _small(form, blanks) for one in whole for form in (one[::-1], *in_groups(one)) if form not in plain
        )
        windows = {part for one in plain for part in _windows(one, 1)}
        windows.update(part for one in other for part in _windows(one, _STRIDE))
        bare = {part for one in (*plain, *other) for part in _windows_of_bare(bare_letters(one))}
        return cls(_Sought((*plain, *other)), _Sought(whole), tuple(sorted(windows)), tuple(sorted(bare)))


def _small(text: bytes, blanks: bytes) -> bytes:
    return text.translate(_LOWER, blanks)


def _windows(folded: bytes, stride: int) -> Iterable[bytes]:
    size = min(_WINDOW, len(folded) // 2)
    return (folded[at : at + size] for at in range(0, len(folded) - size + 1, stride)) if size > 3 else ()


def _windows_of_bare(folded: bytes) -> Iterable[bytes]:
    """Return windows so far apart that three fifths of the value hold one."""
    return _windows(folded, max(1, most_left(len(folded)) - _WINDOW)) if len(folded) >= _LEAST_BARE else ()


def bare_letters(folded: bytes) -> bytes:
    """Return the letters alone: the rest without numbers of lines, arrows and bars."""
    return folded.translate(None, _NO_LETTERS)


def may_show_numbers(folded: bytes) -> bool:
    """True if as many digits are together as a dump has in a line. `folded`: small letters without blanks."""
    return _RUN in folded.translate(_DIGITS, b",;:")


def in_columns(text: bytes, sought: Columns, blanks: bytes, ignored: re.Pattern[bytes]) -> list[Span]:
    """Yield where pieces of what is `sought` are in `text` that together are most of it. In order, apart.

    `blanks` are bytes that may be between any two letters, `ignored` characters without width.
    """
    plain = ignored.sub(_blank, _ESCAPE.sub(_blank, text))
    readings = [(_letters(plain, blanks), sought.letters), *((one, sought.numbers) for one in _numbers(plain))]
    found = {reading.place(number) for reading, these in readings for number in _chains(reading, these)}
    return _together(text, sorted(found))


def _blank(match: re.Match[bytes]) -> bytes:
    return b" " * len(match[0])


def _letters(text: bytes, blanks: bytes) -> _Reading:
    read = _Reading(_BETWEEN_LETTERS)
    for run in re.finditer(rb"[^%b]+" % re.escape(blanks), text.translate(_LOWER)):
        read.add(run[0], *run.span())
    return read


def _numbers(text: bytes) -> Iterable[_Reading]:
    readings: dict[tuple[int, Order], _Reading] = {}
    orders: tuple[Order, ...] = ("big", "little")
    for base in (2, 8, 10, 16):
        readings |= {(base, order): _Reading(_BETWEEN_NUMBERS, order, base in (8, 10)) for order in orders}
    for match in _NUMBER.finditer(text):
        digits, (start, end) = match[1], match.span(1)
        for base, count in _as_numbers(digits):
            value = int(digits, base)
            if base == 10 and count > 2 and text[start - 1 : start] == b"-":
                value = (1 << 8 * count) - value  # as a processor keeps it, and `od -td4` shows it
            if 0 <= value < 1 << 8 * count:
                big = value.to_bytes(count, "big")
                readings[base, "big"].add(big, start, end)
                readings[base, "little"].add(big[::-1], start, end)
    return readings.values()


def _as_numbers(digits: bytes) -> Iterator[tuple[int, int]]:
    """Return the bases in which these may be a number, and of how many bytes."""
    length = len(digits)
    if length % 2 == 0:
        yield 16, length // 2
    if digits.isdigit():
        if length in _BYTES_OF_OCTAL and not digits.translate(None, b"01234567"):
            yield 8, _BYTES_OF_OCTAL[length]
        yield 10, _BYTES_OF_DECIMAL.get(length) or max(8, (int(digits).bit_length() + 7) // 8)
        if length % 8 == 0 and not digits.translate(None, b"01"):
            yield 2, length // 8


def _chains(reading: _Reading, sought: _Sought) -> set[int]:
    """Return the numbers of all bytes that belong to pieces of one of the forms: at least three fifths of it."""
    said, gap, found = bytes(reading.said), reading.gap, set[int]()
    backwards = b""
    tried: dict[int, dict[int, int]] = defaultdict(dict)
    seeds, whose = sought.seeds
    for number, place in seeds.places(said):
        for form, first in whose[number]:
            # What goes on from the seed before this one was tried with it.
            latest, tried[form][place - first] = tried[form].get(place - first), place
            if latest == place - 1 or place in found:
                continue
            secret = sought.forms[form]
            after = _onward(said, secret, place, first, gap)
            backwards = backwards or said[::-1]
            before = _onward(backwards, secret[::-1], len(said) - place, len(secret) - first, gap)
            if len(after) + len(before) >= most_left(len(secret)):
                found.update(after, (len(said) - 1 - one for one in before))
    return found


def _onward(said: bytes, secret: bytes, place: int, at: int, gap: int) -> list[int]:
    """Return the numbers of the bytes that continue `secret` from its letter `at`, from `place` on."""
    found: list[int] = []
    while at < len(secret):
        for back in range(min(_PIECE, len(found) + 1)):  # a letter of the next column may look like the next letter
            piece = secret[at - back : at - back + _PIECE]
            onward = said.find(piece, place - back, place + gap + len(piece))
            if onward >= 0:
                break
        else:
            break
        del found[len(found) - back :]
        place, at = onward, at - back
        while at < len(secret) and place < len(said) and said[place] == secret[at]:
            found.append(place)
            place, at = place + 1, at + 1
    return found


def _together(text: bytes, spans: list[Span]) -> list[Span]:
    """Join those with nothing but blanks between them: lines stay lines."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and not text[joined[-1][1] : start].strip(b" \t"):
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
