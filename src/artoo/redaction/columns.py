"""Known values in columns: what `xxd`, `hexdump` and `od` show, a few letters a line and other things between.

No format is known here. A text is read as letters, and as numbers in base 16, 10 and 8, those of several bytes in
both orders; pieces of a value that go on where the one before ended, with little between them, are the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_ESCAPE = re.compile(rb"\\{1,7}(?:u[0-9A-Fa-f]{4}|[^0-9])", re.DOTALL)
_NUMBER = re.compile(rb"(?<![0-9A-Za-z])(?:0?[xX])?([0-9A-Fa-f]{2,256})(?![0-9A-Za-z])")
_DIGITS = bytes(97 if chr(one) in "0123456789abcdefx" else 32 for one in range(256))
_RUN = b"a" * 16
"""So many digits with nothing but blanks and the like between them: no line of a dump has fewer."""
_LOWER = bytes(range(256)).lower()
_BYTES_OF_OCTAL = {3: 1, 6: 2, 11: 4, 22: 8}
"""How many bytes a number with so many octal digits has: `od` writes them all."""
SHORTEST = 10
"""Of a value that is looked for otherwise than as it is: the letters of a word stand in many texts."""

_PIECE = 4
_BETWEEN_LETTERS, _BETWEEN_NUMBERS = 96, 32
"""The most that lies between two pieces: the other columns of a line with 32 bytes."""

Span = tuple[int, int]


def most_left(length: int) -> int:
    """How many letters of a value make a key to guess of what is left of it."""
    return max(SHORTEST, length * 3 // 5 + 1)


@dataclass(slots=True)
class _Reading:
    """What a text says when it is read in one way, and where each byte of that stands in it."""

    gap: int
    said: bytearray = field(default_factory=bytearray)
    places: list[Span] = field(default_factory=list[Span])

    def add(self, said: bytes, places: Iterable[Span]) -> None:
        self.said += said
        self.places += places


def may_show_numbers(folded: bytes) -> bool:
    """Whether as many digits stand together as a dump has in a line. `folded`: small letters without blanks."""
    return _RUN in folded.translate(_DIGITS, b",;:")


def in_columns(text: bytes, secrets: Iterable[bytes], blanks: bytes, ignored: re.Pattern[bytes]) -> list[Span]:
    """Where pieces of `secrets` stand in `text` that together are most of one. In order, apart from each other.

    `blanks` are bytes that may stand between any two letters, `ignored` what nobody sees.
    """
    plain = ignored.sub(_blank, _ESCAPE.sub(_blank, text))
    letters, numbers = _letters(plain, blanks), _numbers(plain)
    found: set[Span] = set()
    for secret in secrets:
        small = secret.translate(_LOWER, blanks)
        for reading, sought in ((letters, small), *((one, secret) for one in numbers)):
            found.update(reading.places[number] for number in _chains(reading, sought))
    return _together(text, sorted(found))


def _blank(match: re.Match[bytes]) -> bytes:
    return b" " * len(match[0])


def _letters(text: bytes, blanks: bytes) -> _Reading:
    read = _Reading(_BETWEEN_LETTERS, bytearray(text.translate(_LOWER, blanks)))
    read.places += ((place, place + 1) for place, one in enumerate(text) if one not in blanks)
    return read


def _numbers(text: bytes) -> tuple[_Reading, ...]:
    straight, reversed_, octal, decimal = readings = tuple(_Reading(_BETWEEN_NUMBERS) for _ in range(4))
    for match in _NUMBER.finditer(text):
        digits, span = match[1], match.span(1)
        if len(digits) % 2 == 0:
            value = bytes.fromhex(digits.decode())
            pairs = [(place, place + 2) for place in range(*span, 2)]
            straight.add(value, pairs)
            reversed_.add(value[::-1], pairs[::-1])
        if digits.isdigit():
            most = _BYTES_OF_OCTAL.get(len(digits), 0)
            if most and not digits.translate(None, b"01234567"):
                _add(octal, int(digits, 8), most, span)
            if len(digits) <= 5:
                _add(decimal, int(digits), 1 if len(digits) <= 3 else 2, span)
    return readings


def _add(reading: _Reading, value: int, count: int, span: Span) -> None:
    if value < 1 << 8 * count:
        reading.add(value.to_bytes(count, "little"), [span] * count)


def _chains(reading: _Reading, secret: bytes) -> set[int]:
    """The numbers of all bytes that belong to pieces of `secret`: at least three fifths of it."""
    said, gap, length = reading.said, reading.gap, len(secret)
    least, found = most_left(length), set[int]()
    if min(len(said), length) < least:
        return found
    backwards, sought = said[::-1], secret[::-1]
    for first in range(length - _PIECE + 1):
        seed = secret[first : first + _PIECE]
        place = said.find(seed)
        while place >= 0:
            after = [] if place in found else _onward(said, secret, place, first, gap)
            if after:
                before = _onward(backwards, sought, len(said) - place, length - first, gap)
                if len(after) + len(before) >= least:
                    found.update(after, (len(said) - 1 - one for one in before))
            place = said.find(seed, place + 1)
    return found


def _onward(said: bytearray, secret: bytes, place: int, at: int, gap: int) -> list[int]:
    """The numbers of the bytes that go on with `secret` from its letter `at`, from `place` on."""
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
    """Those with nothing but blanks between them as one: lines stay lines."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and not text[joined[-1][1] : start].strip(b" \t"):
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
