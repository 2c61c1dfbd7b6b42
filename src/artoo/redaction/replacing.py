"""Replace secret spans by `[redacted]`, so that JSON stays valid.

This also holds for JSON inside a string of JSON.

The search for secrets reads bytes and does not know the grammar of JSON. So a span may begin inside an escape,
extend beyond the end of a string, or be a number. This module reduces a span to whole letters and whole escapes of
a string, or to a whole number. All other text stays unchanged.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import orjson

MARK = b"[redacted]"

Span = tuple[int, int]

_NUMBER = re.compile(rb"-?\d[\d.eE+-]*+")
_OF_NUMBERS = b"0123456789.eE+-"
_ESCAPE = re.compile(rb"\\++(?:u[0-9A-Fa-f]{4}|[\"'/bfnrt])?")
# Number of bytes of the longest escape from its last backslash on (as in `u00e9`), without its last byte.
_LONGEST_TAIL = 5
# Text that stands before a number or a word without quotes, in JSON that is inside a string.
_BARE = re.compile(rb"[\w\x80-\xff](\\{0,7}+\")[ \t]{0,8}:[ \t]{0,8}\Z")
_LONGEST_BARE = 32
_BACKSLASH = ord("\\")
# The high bits of a UTF-8 byte that is not the first byte of a letter.
_HIGH_BITS, _WITHIN_LETTER = 0xC0, 0x80
# Minimum number of digits of a number that counts as a secret because of its name, since the number in `"secret":
# 3` is a count.
_LEAST_DIGITS = 4


class _Piece(NamedTuple):
    """The part of a span that is in one string (without its quotes) or in one number. It extends from `begins` to
    `ends`."""

    start: int
    end: int
    begins: int
    ends: int
    is_number: bool


def replaced(text: bytes, spans: Iterable[Span], *, known: bool = False) -> bytes:
    """Return `text` with `[redacted]` in place of the spans, which may be in any order. If the spans touch no
    content, the same object is returned.

    If `known` is true, the spans are known values. A number of the text's own JSON is then replaced by 0, because
    any field may contain such a number. Otherwise the name of the number marks it as a secret, and it is replaced
    by `[redacted]` as a string.
    """
    pieces: list[bytes] = []
    done = 0
    for piece in _touched(text, _joined(spans)):
        start, end = (piece.begins, piece.ends) if piece.is_number else _whole(text, piece)
        quote = b'"' if piece.is_number else _quote_of_bare(text, start, piece.begins)
        taken = text[start:end]
        is_count = bool(quote) and not known and len(taken) < _LEAST_DIGITS and taken.isdigit()
        if start < done or start >= end or is_count:
            continue
        pieces += (text[done:start], b"0" if piece.is_number and known else quote + MARK + quote)
        done = end
    if not pieces:
        return text
    pieces.append(text[done:])
    return b"".join(pieces)


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order. Spans that overlap are joined."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _touched(text: bytes, spans: Sequence[Span]) -> Iterator[_Piece]:
    """Return the pieces of the spans in order. If the text is not JSON, it is treated as the content of one
    string."""
    quotes = _quotes(text) if _is_json(text) else [-1, len(text)]
    for start, end in spans:
        while start < end:
            number = bisect_right(quotes, start)
            if number % 2:
                begins, ends = quotes[number - 1] + 1, quotes[number]
                yield _Piece(max(start, begins), min(end, ends), begins, ends, is_number=False)
                start = ends + 1
            else:
                until = min([end, *quotes[number : number + 1]])
                yield from _numbers(text, start, until)
                start = until


def _is_json(text: bytes) -> bool:
    if not text.lstrip()[:1].startswith((b"{", b"[", b'"')):
        return False
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            # This is the only parser that accepts lone surrogates, which occur in file names that are not UTF-8.
            json.loads(text)
        except (ValueError, RecursionError):
            return False
    return True


def _quotes(text: bytes) -> list[int]:
    """Return the positions of the quotes at which the strings of JSON begin and end."""
    without_escaped = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    return [match.start() for match in re.finditer(b'"', without_escaped)]


def _numbers(text: bytes, start: int, end: int) -> Iterator[_Piece]:
    """Return the whole numbers between two strings of JSON that are touched by a span."""
    first = start
    while first > 0 and text[first - 1] in _OF_NUMBERS:
        first -= 1
    for match in _NUMBER.finditer(text, first):
        if match.start() >= end:
            break
        yield _Piece(*match.span(), *match.span(), is_number=True)


def _quote_of_bare(text: bytes, start: int, begins: int) -> bytes:
    """Return the quote that a bare value needs in JSON inside a string. Return an empty text if the value is not
    bare."""
    before = _BARE.search(text, max(begins, start - _LONGEST_BARE), start)
    return b"" if before is None else before[1]


def _whole(text: bytes, piece: _Piece) -> Span:
    """Return the piece, reduced to whole letters and without escapes of which it contains only a part."""
    start, end, begins, ends, _ = piece
    while start < end and text[start] & _HIGH_BITS == _WITHIN_LETTER:
        start += 1
    while end < ends and text[end] & _HIGH_BITS == _WITHIN_LETTER:
        end += 1
    cut = _escape_around(text, start, begins, ends)
    start = start if cut is None else cut[1]
    cut = _escape_around(text, end, begins, ends)
    return start, (end if cut is None else cut[0])


def _escape_around(text: bytes, place: int, begins: int, ends: int) -> Span | None:
    """Return the span of the escape that begins before `place` and ends after it, with all its backslashes.

    JSON inside a string doubles its backslashes, so their number does not show whether the next letter is escaped.
    Therefore the letter is always treated as escaped."""
    first = text.rfind(b"\\", max(begins, place - _LONGEST_TAIL), place)
    escape = _ESCAPE.match(text, first, ends) if first >= 0 else None
    if escape is None or escape.end() <= place:
        return None
    while first > begins and text[first - 1] == _BACKSLASH:
        first -= 1
    return first, escape.end()
