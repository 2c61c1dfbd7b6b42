"""Secrets do not belong in a log: keys, tokens, Authorization headers, private keys, passwords.

Redaction is by shape, so it is a net and not a proof: a secret that looks like a word gets through, unless its
exact value is given. It is idempotent. It works on the bytes of an encoded line, and looks closely only where a
telling literal occurs: nearly every line has none, and a prompt of many kilobytes must cost microseconds.

No replaced value ever holds a quote or a backslash, so a line of JSON stays one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

MARK = "[redacted]"
_MARK = MARK.encode()
_SHORTEST_EXACT = 6
_MOST_PASSES = 8
"""Taking one secret out can lay bare that what stood beside it is one too."""

_QUOTE = rb"\\{0,7}+[\"']?"
_GAP = rb"[ \t]{0,8}+"
_SPACE = rb"[ \t]{1,8}+"
_NEW = rb"(?!\[redacted\])"
_NOT_IN_WORD = rb"(?<![A-Za-z0-9])"
_SCHEME = rb"(?:(?:basic|bearer|token|digest|negotiate|apikey|aws4-hmac-sha256)[ \t]{1,8}+)?+"
_NAME = (
    rb"(?:pass(?:word|wd|phrase)[\w-]{0,32}|(?<=[_-])pass|pwd|secret[\w-]{0,32}|credentials?"
    rb"|(?:(?<=api)|(?<=api[_-])|(?<=access)|(?<=access[_-])|(?<=secret[_-])|(?<=private)|(?<=private[_-]))key[\w-]{0,32}"
    rb"|(?:(?<![A-Za-z0-9])|(?<=access)|(?<=auth)|(?<=refresh)|(?<=session))token)"
)
_ASSIGNMENT = rb"(?![\w-])" + _QUOTE + _GAP + rb"(?:=>|:=|[:=](?!=))" + _GAP
_OPTION = (
    rb"(?:(?<=--)(?:pass(?:word|wd|phrase)?|pwd|secret|token)|(?<=--api-)key|(?<=--access-)key|(?<=--auth-)token)"
    + _SPACE
    + rb"(?!-)"
)
# What stands where a value stands in code, templates and type annotations is not a secret.
_NOT_A_WORD_OF_CODE = (
    rb"(?!(?:None|null|true|false|str|string|int|bytes|bool|undefined|required|optional)(?![\w-])"
    rb"|os\.|process\.|\$|%|\*{3}|\\{0,7}[\"']?\[redacted\])"
)
# A quote before one of `,}]:` ends a string of the line's own JSON: what follows is the next one, and no value.
_VALUE = (
    rb"(?:\\{0,7}\"(?![,}\]:])(?P<double>[^\"\\\r\n]{1,4096})|\\{0,7}'(?P<single>[^\"'\\\r\n]{1,4096})"
    rb"|(?P<value>[^\s\"'\\,;&|(){}<>\[\]]{1,4096}+)(?!\())"
)


class _Rule(NamedTuple):
    """Where one of `signs` (lower case) occurs, `pattern` is matched there; its group is the secret.

    A `|` in a sign is where the match begins; what stands before it is looked back at.
    """

    signs: tuple[bytes, ...]
    pattern: bytes


def _rule(signs: str, pattern: bytes) -> _Rule:
    return _Rule(tuple(signs.encode().split()), pattern)


# As much of the context as tells most lines apart: `prompt_tokens`, `keyboard`, `passed` are in nearly all of them.
_NAME_SIGNS = (
    *(b"password", b"passwd", b"passphrase", b"_|pass", b"-|pass", b"pwd", b"secret", b"credential"),
    *(b"api|key", b"api_|key", b"api-|key", b"access|key", b"access_|key", b"access-|key"),
    *(b"secret_|key", b"secret-|key", b"private|key", b"private_|key", b"private-|key"),
    *(b"token" + after for after in (b"\\", b'"', b"'", b" ", b"\t", b":", b"=")),
)


_RULES = (
    _rule(
        "-----begin",
        rb"(?P<value>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^\"\\]|\\[^\"])*?"
        rb"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|(?=\\?\")|\Z))",
    ),
    _rule(
        "authorization",
        rb"authorization" + _QUOTE + _GAP + rb"[:=]" + _GAP + _QUOTE + _SCHEME + _NEW
        + rb"(?P<value>[^\s\"'\\,;]{1,8192})",
    ),
    _rule("cookie", rb"cookie" + _GAP + rb":" + _GAP + _NEW + rb"(?P<value>[^\"'\\\r\n]{1,8192})"),
    _rule(
        "bearer",
        _NOT_IN_WORD + rb"bearer" + _SPACE + rb"(?=[\w.~+/=-]{0,512}[0-9._~+/])(?P<value>[\w.~+/-]{8,8192}={0,2})",
    ),
    _rule(
        "sk- gho_ ghp_ ghr_ ghs_ ghu_ github_pat_ glpat- hf_ npm_ pypi- gsk_",
        _NOT_IN_WORD + rb"(?P<value>(?:sk-|gh[oprsu]_|github_pat_|glpat-|hf_|npm_|pypi-|gsk_)[\w-]{16,512})",
    ),
    _rule("k_live_ k_test_", rb"(?<=[rs])(?P<value>k_(?:live|test)_\w{16,512})"),
    _rule("xox", _NOT_IN_WORD + rb"(?P<value>xox[abeprs]-[A-Za-z0-9-]{10,256})"),
    _rule("akia asia aiza", rb"(?P<value>(?:AKIA|ASIA)[0-9A-Z]{16}(?![\w-])|AIza[\w-]{30,64})"),
    _rule("eyj", _NOT_IN_WORD + rb"(?P<value>eyJ[\w-]{8,4096}+\.[\w-]{8,8192}+\.[\w-]{4,4096})"),
    _rule("://", rb"://[^\s/:@\"'\\]{0,256}+:" + _NEW + rb"(?P<value>[^\s/@\"'\\]{1,512}+)@"),
    _Rule(
        _NAME_SIGNS, rb"(?:" + _NAME + _ASSIGNMENT + rb"|" + _OPTION + rb")" + _NOT_A_WORD_OF_CODE + _VALUE
    ),
)  # fmt: skip


class _Sign(NamedTuple):
    """What is matched `offset` bytes after the beginning of `text`."""

    text: bytes
    offset: int
    pattern: re.Pattern[bytes]


@cache
def _by_sign() -> tuple[_Sign, ...]:
    """Every sign with what is matched where it stands. Compiled by the first line: an opening is 3 ms cheaper."""
    compiled = ((rule.signs, re.compile(rule.pattern, re.IGNORECASE)) for rule in _RULES)
    return tuple(
        _Sign(sign.replace(b"|", b""), max(0, sign.find(b"|")), pattern)
        for signs, pattern in compiled
        for sign in signs
    )


def holds_secret(text: str) -> bool:
    """Whether a text has the form of a secret, or names one."""
    return next(_secrets_in(text.encode("utf-8", "surrogatepass")), None) is not None


class Redactor:
    """Replaces secrets by `[redacted]`, keeping the names before them.

    `secrets` are exact values that this process knows (its own API keys). Those shorter than six characters
    are ignored: they would redact ordinary words.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        exact = {form for s in secrets if len(s) >= _SHORTEST_EXACT for form in (s, json.dumps(s)[1:-1])}
        longest_first = sorted((e.encode("utf-8", "surrogatepass") for e in exact), key=len, reverse=True)
        self._exact = tuple(longest_first)

    def lines(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        """Each line without its secrets; they are searched together first, because nearly all have none."""
        together = b"\n".join(lines)
        suspicious = any(secret in together for secret in self._exact) or _may_hold_secrets(together)
        return [self.line(line) for line in lines] if suspicious else lines

    def line(self, line: bytes) -> bytes:
        """`line` (UTF-8 text or one line of JSON) without its secrets; the same object when it has none."""
        for secret in self._exact:
            if secret in line:
                line = line.replace(secret, _MARK)
        for _ in range(_MOST_PASSES):
            found = sorted(_secrets_in(line))
            if not found:
                break
            line = _without(line, found)
        return line

    def text(self, text: str) -> str:
        """`text` without its secrets."""
        return self.line(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _may_hold_secrets(text: bytes) -> bool:
    """Whether any sign occurs. A line end is in none, so this holds for lines together as for each of them."""
    return bool(_signs().find_matches_as_indexes(text.lower()))


def _without(line: bytes, found: list[tuple[int, int]]) -> bytes:
    pieces: list[bytes] = []
    done = 0
    for start, end in found:
        if start >= done:
            # A number in the line's own JSON: what stands for it has to be a value too.
            bare = line.endswith(b'":', done, start)
            pieces += (line[done:start], b'"%b"' % _MARK if bare else _MARK)
        done = max(done, end)
    pieces.append(line[done:])
    return b"".join(pieces)


def _secrets_in(line: bytes) -> Iterator[tuple[int, int]]:
    by_sign = _by_sign()
    done = [0] * len(by_sign)
    for number, start, _ in _signs().find_matches_as_indexes(line.lower(), overlapping=True):
        _, offset, pattern = by_sign[number]
        place = start + offset
        if place < done[number]:
            continue
        match = pattern.match(line, place)
        if match is not None:
            done[number] = match.end()
            yield next(match.span(group) for group in pattern.groupindex if match[group] is not None)


@cache
def _signs() -> BytesAhoCorasick:
    """All signs in one pass: 5 µs for the line of a model call, against 40 for a search each.

    Imported by the first line and not by whoever opens a log: it takes 2 ms.
    """
    from ahocorasick_rs import BytesAhoCorasick, Implementation

    return BytesAhoCorasick([sign.text for sign in _by_sign()], implementation=Implementation.DFA)
