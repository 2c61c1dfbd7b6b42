"""Remove known secret values in all spellings, such as JSON, URL, hex and base64.

A value is found if it is unchanged, in a JSON string, in a URL, in hex, base64 or base32, in another letter case,
backwards, or with blanks, line ends or zero-width characters between its letters. It is not found in a hex dump
with columns, which has other text between the letters.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from artoo.redaction.replacing import replaced

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

# Minimum number of characters of a value that is redacted. If shorter values were redacted, ordinary words would be
# lost.
_SHORTEST = 6
# Minimum number of bytes of a value that is also searched in other forms. The letters of a shorter value occur in
# many texts by chance.
_SHORTEST_LOOSE = 10
# Maximum number of forms for which a DFA is built. With more forms it would exceed a processor's cache.
_FEW = 1_000
_DROPPED = b" \t\r\n\\\"'"
_ADDRESS_SAFE = bytes.maketrans(b"+/", b"-_")
_LOWER = bytes(range(256)).lower()
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})|\\{1,7}u00([0-9A-Fa-f]{2})")
_UNICODE = re.compile(rb"\\u00([0-9A-Fa-f]{2})")
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_LINE_END = re.compile(rb"\\[nrt]")
# Unicode's default ignorable characters, and its blanks other than those of ASCII, in UTF-8.
_UNSEEN = (
    rb"\xc2[\xa0\xad]|\xcd\x8f|\xd8\x9c|\xe1(?:\x85[\x9f\xa0]|\x9a\x80|\x9e[\xb4\xb5]|\xa0[\x8b-\x8f])"
    rb"|\xe2(?:\x80[\x80-\x8f\xa8-\xaf]|\x81[\x9f-\xaf])|\xe3(?:\x80\x80|\x85\xa4)"
    rb"|\xef(?:\xb8[\x80-\x8f]|\xbb\xbf|\xbe\xa0|\xbf[\xb0-\xb8])|\xf3\xa0[\x80-\xbf][\x80-\xbf]"
)
_UNSEEN_ESCAPED = (
    rb"\\{1,7}u(?:00(?:a0|ad)|034f|061c|11(?:5f|60)|1680|17b[45]|180[b-f]|20(?:0.|2[89a-f]|5f|6.)|3000|3164"
    rb"|fe0.|feff|ffa0|fff[0-8]|db4[0-3]\\{1,7}ud[c-f]..)"
)
# The first bytes of these characters. Searching for each of them is faster than the pattern, and most texts contain
# none.
_LEADS = b"\xc2\xcd\xd8\xe1\xe2\xe3\xef\xf3"
_IGNORED = re.compile(_UNSEEN)
_IGNORED_ESCAPED = re.compile(_UNSEEN_ESCAPED, re.IGNORECASE)
_BETWEEN = rb"(?:[ \t\r\n]|\\{1,7}[nrt]|%b|%b)*" % (_UNSEEN, _UNSEEN_ESCAPED)


class _Search:
    """A search for any of `forms` in one pass. No form may be empty. It is built when the first text is
    searched."""

    def __init__(self, forms: Sequence[bytes]) -> None:
        self._forms = forms
        self._built: BytesAhoCorasick | None = None

    def found(self, text: bytes) -> list[int]:
        """Return the numbers of the forms that occur in the text, in order."""
        if not self._forms:
            return []
        if self._built is None:
            # This is imported here and not when a log is opened, because the import takes 2 ms.
            from ahocorasick_rs import BytesAhoCorasick, Implementation

            kind = Implementation.DFA if len(self._forms) <= _FEW else Implementation.ContiguousNFA
            self._built = BytesAhoCorasick(self._forms, implementation=kind)
        return sorted({number for number, _, _ in self._built.find_matches_as_indexes(text, overlapping=True)})


@dataclass(frozen=True, slots=True)
class Known:
    """The forms of the known secrets: the `exact` ones, and the `loose` ones that are searched in folded text. Both
    are sorted by length, longest first."""

    exact: tuple[bytes, ...]
    loose: tuple[str, ...]
    wholes: _Search
    folded: _Search
    finders: dict[int, re.Pattern[bytes]] = field(default_factory=dict[int, re.Pattern[bytes]])
    """The patterns of those loose forms that were already found in a text, by the number of the form."""

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Known:
        """Prepare these values. Values with less than six characters are ignored, as they would redact ordinary
        words."""
        long = {one for one in secrets if len(one) >= _SHORTEST}
        exact = tuple(sorted({form for one in long for form in _forms(one)}, key=len, reverse=True))
        loose = {part for one in long for form in (one, one[::-1]) for part in _parts(form)}
        loose |= {form.decode() for one in long for form in _coded(one)}
        folded = ((_folded(one.encode("utf-8", "surrogatepass")), one) for one in loose)
        longest = sorted(folded, key=lambda pair: (len(pair[0]), pair), reverse=True)
        return cls(
            exact=exact,
            loose=tuple(one for _, one in longest),
            wholes=_Search(exact),
            folded=_Search([one for one, _ in longest]),
        )

    def may_be_in(self, text: bytes) -> bool:
        """Return whether any of the values may be in `text`."""
        return bool(self.wholes.found(text)) or bool(self._loose_in(text))

    def taken_out(self, text: bytes) -> bytes:
        """Return `text` without the values. If it contains none, the same object is returned."""
        for number in self.wholes.found(text):
            text = _without(text, re.compile(re.escape(self.exact[number])))
        for number in self._loose_in(text):
            text = _without(text, self._finder(number))
        return text

    def _loose_in(self, text: bytes) -> list[int]:
        """Return the numbers of the loose forms that may be in a text."""
        return self.folded.found(_folded(text)) if self.loose else []

    def _finder(self, number: int) -> re.Pattern[bytes]:
        if number not in self.finders:
            self.finders[number] = _finder(self.loose[number])
        return self.finders[number]


def _without(text: bytes, pattern: re.Pattern[bytes]) -> bytes:
    return replaced(text, [match.span() for match in pattern.finditer(text)], known=True)


def _parts(secret: str) -> Iterable[str]:
    """Return the whole secret, and the three fifths of it at each end. The parts are redacted too, because the rest
    of a key could be guessed from them."""
    if len(secret) >= _SHORTEST_LOOSE:
        most = max(_SHORTEST_LOOSE, len(secret) * 3 // 5 + 1)
        yield from (secret, secret[:most], secret[-most:])


def _forms(secret: str) -> Iterable[bytes]:
    """Return the value and its encodings in JSON, in a URL, in hex, base64 and base32."""
    raw = secret.encode("utf-8", "surrogatepass")
    yield from (raw, json.dumps(secret)[1:-1].encode(), quote(raw, safe="").encode(), raw.hex().encode())
    yield from _coded(secret)


def _coded(secret: str) -> Iterable[bytes]:
    """Return the value in hex, base64 and base32. These forms are searched loosely, because tools break them into
    lines."""
    raw = secret.encode("utf-8", "surrogatepass")
    if len(raw) >= _SHORTEST_LOOSE:
        yield from (raw.hex().encode(), *_in_groups(raw))


def _in_groups(raw: bytes) -> Iterable[bytes]:
    """Return the value in base64, in URL-safe base64 and in base32.

    These encodings work on groups of bytes, so the result depends on the number of bytes before the value."""
    for before in range(3):
        inner = _own_letters(raw, before, 6, base64.b64encode)
        yield from dict.fromkeys((inner, inner.translate(_ADDRESS_SAFE)))
    for before in range(5):
        yield _own_letters(raw, before, 5, base64.b32encode)


def _own_letters(raw: bytes, before: int, bits: int, coded: Callable[[bytes], bytes]) -> bytes:
    """Return the letters that depend only on the value. The letters at both ends are left out, because they also
    depend on neighbouring bytes."""
    letters = coded(bytes(before) + raw)
    return letters[-(-8 * before // bits) : 8 * (before + len(raw)) // bits]


def _folded(text: bytes) -> bytes:
    """Return the text in lower case, with escapes decoded, and without blanks, quotes, line ends and zero-width
    characters."""
    if not text.isascii() and any(lead in text for lead in _LEADS):
        text = _IGNORED.sub(b"", text)
    if b"\\u" in text:
        text = _IGNORED_ESCAPED.sub(b"", text)
    if b"\\\\u00" in text:
        text = _ESCAPED.sub(_written_out, text)
    else:  # This has the same result but uses faster searches, because backslashes of line ends are common.
        text = _UNICODE.sub(_one_written_out, text)
        text = _PERCENT.sub(_one_written_out, text)
    return _LINE_END.sub(b"", text).translate(_LOWER, _DROPPED)


def _written_out(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1] or match[2], 16)])


def _one_written_out(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 16)])


def _finder(secret: str) -> re.Pattern[bytes]:
    letters = (one for one in secret.encode("utf-8", "surrogatepass") if one not in _DROPPED)
    return re.compile(_BETWEEN.join(map(_letter, letters)), re.IGNORECASE)


def _letter(code: int) -> bytes:
    hexadecimal = b"%02x" % code
    return rb"(?:%b|%%%b|\\{1,7}u00%b)" % (re.escape(bytes([code])), hexadecimal, hexadecimal)
