"""Values that are known to be secret: taken out however they are written.

As they are, in a JSON string, in an address, in hex, base64 or base32, in other letters' case, backwards, pulled
apart by blanks, line ends and what nobody sees, or in the columns of a dump: whoever wants a key to pass writes it
differently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from artoo.redaction.coded import SHORTEST, in_groups, in_hex
from artoo.redaction.columns import Columns, bare_letters, in_columns, may_show_numbers, most_left

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

_SHORTEST = 6
_FEW = 1000
"""Forms for which the quickest search is worth its making: that takes 10 ms for a thousand, and is larger than a
processor's cache for some thousands."""
_DROPPED = b" \t\r\n\\\"'"
_LOWER = bytes(range(256)).lower()
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})|\\{1,7}u00([0-9A-Fa-f]{2})")
_UNICODE = re.compile(rb"\\u00([0-9A-Fa-f]{2})")
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_LINE_END = re.compile(rb"\\[nrt]")
_UNSEEN = (
    rb"\xc2[\xa0\xad]|\xcd\x8f|\xd8\x9c|\xe1(?:\x85[\x9f\xa0]|\x9a\x80|\x9e[\xb4\xb5]|\xa0[\x8b-\x8f])"
    rb"|\xe2(?:\x80[\x80-\x8f\xa8-\xaf]|\x81[\x9f-\xaf])|\xe3(?:\x80\x80|\x85\xa4)"
    rb"|\xef(?:\xb8[\x80-\x8f]|\xbb\xbf|\xbe\xa0|\xbf[\xb0-\xb8])|\xf3\xa0[\x80-\xbf][\x80-\xbf]"
)
"""Unicode's default ignorable characters, and its blanks but for ASCII's, in UTF-8."""
_UNSEEN_ESCAPED = (
    rb"\\{1,7}u(?:00(?:a0|ad)|034f|061c|11(?:5f|60)|1680|17b[45]|180[b-f]|20(?:0.|2[89a-f]|5f|6.)|3000|3164"
    rb"|fe0.|feff|ffa0|fff[0-8]|db4[0-3]\\{1,7}ud[c-f]..)"
)
_LEADS = b"\xc2\xcd\xd8\xe1\xe2\xe3\xef\xf3"
"""Their first bytes: to look for each is quicker than the pattern, and most texts have none."""
_IGNORED = re.compile(_UNSEEN)
_IGNORED_ESCAPED = re.compile(_UNSEEN_ESCAPED, re.IGNORECASE)
_BETWEEN = rb"(?:[ \t\r\n]|\\{1,7}[nrt]|%b|%b)*" % (_UNSEEN, _UNSEEN_ESCAPED)


@dataclass(frozen=True, slots=True)
class Known:
    """`exact` forms, longest first, and `loose` ones: folded. `written` are these unfolded, in the same order: what
    finds them in a text as it is written. Behind them in `loose` are the windows of `columns`."""

    exact: tuple[bytes, ...]
    loose: tuple[bytes, ...]
    written: tuple[str, ...]
    columns: Columns

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
        columns = Columns.of((one.encode("utf-8", "surrogatepass") for one in long), _DROPPED)
        return cls(tuple(sorted(exact, key=len, reverse=True)), (*forms, *columns.windows), written, columns)

    def may_be_in(self, text: bytes) -> bool:
        """Whether any of them may stand in `text`."""
        return bool(_found(self.exact, text)) or (bool(self.loose) and bool(self._hints(_folded(text))))

    def taken_out(self, text: bytes, mark: bytes) -> bytes:
        """`text` with `mark` in their place; the same object when there is none."""
        for number in _found(self.exact, text):
            text = text.replace(self.exact[number], mark)
        if not self.loose:
            return text
        hints = self._hints(_folded(text))
        for number in hints:
            if number < len(self.written):
                text = _finder(self.written[number]).sub(mark, text)
        if hints and hints[-1] >= len(self.written):
            text = self._out_of_columns(text, mark)
        return text

    def _hints(self, folded: bytes) -> list[int]:
        """Which loose forms stand there; a number above theirs: one may stand in columns."""
        found = _found(self.loose, folded)
        in_lines = may_show_numbers(folded) or _found(self.columns.bare, bare_letters(folded))
        return [*found, len(self.written)] if in_lines else found

    def _out_of_columns(self, text: bytes, mark: bytes) -> bytes:
        spans = in_columns(text, self.columns, _DROPPED, _IGNORED)
        for start, end in reversed(spans):
            # One number may be JSON's own, which no word can stand for.
            text = text[:start] + (b"0" if text[start:end].isdigit() else mark) + text[end:]
        return text


def _found(forms: tuple[bytes, ...], text: bytes) -> list[int]:
    """Which of `forms` (none of them empty) occur, in their order: one pass, however many they are."""
    if not forms:
        return []
    return sorted({number for number, _, _ in _search(forms).find_matches_as_indexes(text, overlapping=True)})


@lru_cache(maxsize=64)
def _search(forms: tuple[bytes, ...]) -> BytesAhoCorasick:
    """Imported by the first text and not by whoever opens a log: it takes 2 ms."""
    from ahocorasick_rs import BytesAhoCorasick, Implementation

    kind = Implementation.DFA if len(forms) <= _FEW else Implementation.ContiguousNFA
    return BytesAhoCorasick(forms, implementation=kind)


def _parts(secret: str) -> Iterable[str]:
    """The whole and its longer parts: what is left of a key that was cut is a key to guess."""
    most = most_left(len(secret))
    if len(secret) >= SHORTEST:
        yield from (secret, secret[:most], secret[-most:])


def _forms(secret: str) -> Iterable[bytes]:
    """Ways of writing it that change its letters, or that JSON makes of it."""
    raw = secret.encode("utf-8", "surrogatepass")
    yield from (raw, json.dumps(secret)[1:-1].encode(), quote(raw, safe="").encode(), in_hex(raw))
    yield from _coded(secret)


def _coded(secret: str) -> Iterable[bytes]:
    """`xxd -p`, `od -An -tx1` and `base64` break their lines or set bytes apart."""
    raw = secret.encode("utf-8", "surrogatepass")
    if len(raw) >= SHORTEST:
        yield from (in_hex(raw), *in_groups(raw))


def _folded(text: bytes) -> bytes:
    """Small letters, without blanks, quotes, line ends and what nobody sees; what is escaped, written out."""
    if not text.isascii() and any(lead in text for lead in _LEADS):
        text = _IGNORED.sub(b"", text)
    if b"\\u" in text:
        text = _IGNORED_ESCAPED.sub(b"", text)
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
