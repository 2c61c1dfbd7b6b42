"""Values that are known to be secret: taken out however they are written.

As they are, in a JSON string, in an address, in base64 or hex, in other letters' case, backwards, or pulled apart
by blanks and line ends: whoever wants a key to pass writes it differently.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

_SHORTEST = 6
_SHORTEST_LOOSE = 10
"""A shorter value is looked for as it is and no other way: the letters of a word stand in many texts."""

_DROPPED = b" \t\r\n\\\"'"
_LOWER = bytes(range(256)).lower()
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})|\\{1,7}u00([0-9A-Fa-f]{2})")
_UNICODE = re.compile(rb"\\u00([0-9A-Fa-f]{2})")
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_LINE_END = re.compile(rb"\\[nrt]")
_BETWEEN = rb"(?:[ \t\r\n]|\\{1,7}[nrt])*"


@dataclass(frozen=True, slots=True)
class Known:
    """`exact` forms, longest first, and `loose` ones: folded. `written` are these unfolded, in the same order: what
    finds them in a text as it is written."""

    exact: tuple[bytes, ...]
    loose: tuple[bytes, ...]
    written: tuple[str, ...]

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Known:
        """Those shorter than six characters are ignored: they would redact ordinary words."""
        long = {one for one in secrets if len(one) >= _SHORTEST}
        exact = {form for one in long for form in _forms(one)}
        loose = {part for one in long for form in (one, one[::-1]) for part in _parts(form)}
        loose |= {form.decode() for one in long for form in _coded(one)}
        folded = ((_folded(one.encode("utf-8", "surrogatepass")), one) for one in loose)
        longest = sorted(folded, key=lambda pair: (len(pair[0]), pair), reverse=True)
        forms, written = tuple(one for one, _ in longest), tuple(one for _, one in longest)
        return cls(tuple(sorted(exact, key=len, reverse=True)), forms, written)

    def may_be_in(self, text: bytes) -> bool:
        """Whether any of them may stand in `text`."""
        return bool(_found(self.exact, text)) or bool(self._loosely_in(text))

    def taken_out(self, text: bytes, mark: bytes) -> bytes:
        """`text` with `mark` in their place; the same object when there is none."""
        for number in _found(self.exact, text):
            text = text.replace(self.exact[number], mark)
        for number in self._loosely_in(text):
            text = _finder(self.written[number]).sub(mark, text)
        return text

    def _loosely_in(self, text: bytes) -> list[int]:
        return _found(self.loose, _folded(text)) if self.loose else []


def _found(forms: tuple[bytes, ...], text: bytes) -> list[int]:
    """Which of `forms` (none of them empty) occur, in their order: one pass, however many they are."""
    if not forms:
        return []
    return sorted({number for number, _, _ in _search(forms).find_matches_as_indexes(text, overlapping=True)})


@lru_cache(maxsize=64)
def _search(forms: tuple[bytes, ...]) -> BytesAhoCorasick:
    """Imported by the first text and not by whoever opens a log: it takes 2 ms."""
    from ahocorasick_rs import BytesAhoCorasick, Implementation

    return BytesAhoCorasick(forms, implementation=Implementation.DFA)


def _parts(secret: str) -> Iterable[str]:
    """The whole and its longer parts: what is left of a key that was cut is a key to guess."""
    most = max(_SHORTEST_LOOSE, len(secret) * 3 // 5 + 1)
    if len(secret) >= _SHORTEST_LOOSE:
        yield from (secret, secret[:most], secret[-most:])


def _forms(secret: str) -> Iterable[bytes]:
    """Ways of writing it that change its letters, or that JSON makes of it."""
    raw = secret.encode("utf-8", "surrogatepass")
    yield from (raw, json.dumps(secret)[1:-1].encode(), quote(raw, safe="").encode(), raw.hex().encode())
    yield from _coded(secret)


def _coded(secret: str) -> Iterable[bytes]:
    """In hex and in base64: `xxd -p`, `od -An -tx1` and `base64` break their lines or set bytes apart."""
    raw = secret.encode("utf-8", "surrogatepass")
    if len(raw) < _SHORTEST_LOOSE:
        return
    yield raw.hex().encode()
    for offset in range(3):
        # What stands before it decides the grouping; the letters at the ends belong to its neighbours as well.
        coded = base64.b64encode(bytes(offset) + raw)
        inner = coded[(0, 2, 3)[offset] : len(coded) // 4 * 4 - (4 if (offset + len(raw)) % 3 else 0)]
        yield from (inner, inner.translate(bytes.maketrans(b"+/", b"-_")))


def _folded(text: bytes) -> bytes:
    """Small letters, without blanks, quotes and the escapes of line ends; what is escaped, written out."""
    if b"\\\\u00" in text:
        text = _ESCAPED.sub(_written_out, text)
    else:  # the same, by what a search can jump to: line ends make backslashes common
        text = _UNICODE.sub(_one_written_out, text)
        text = _PERCENT.sub(_one_written_out, text)
    return _LINE_END.sub(b"", text).translate(_LOWER, _DROPPED)


def _written_out(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1] or match[2], 16)])


def _one_written_out(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 16)])


@lru_cache(maxsize=64)
def _finder(secret: str) -> re.Pattern[bytes]:
    letters = (one for one in secret.encode("utf-8", "surrogatepass") if one not in _DROPPED)
    return re.compile(_BETWEEN.join(map(_letter, letters)), re.IGNORECASE)


def _letter(code: int) -> bytes:
    hexadecimal = b"%02x" % code
    return rb"(?:%b|%%%b|\\{1,7}u00%b)" % (re.escape(bytes([code])), hexadecimal, hexadecimal)
