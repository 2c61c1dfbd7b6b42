"""Remove secrets from a log: keys, tokens, Authorization headers, private keys, passwords.

Redaction is by shape, so it is a net and not a proof: a secret that looks like a word gets through, unless its
exact value is given. It is idempotent. It works on the bytes of an encoded line, and looks closely only where a
telling literal occurs: nearly every line has none, and a prompt of many kilobytes must cost microseconds.

A line of JSON stays one, of the same shape: `replacing.py` sees to it, whatever was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from artoo.redaction.formats import RULES
from artoo.redaction.known import Known
from artoo.redaction.replacing import MARK as _MARK
from artoo.redaction.replacing import Span, replaced
from artoo.redaction.signless import signless

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

MARK = _MARK.decode()
# Taking one secret out can show that the text next to it is one too, or bring pieces of one together.
_MOST_PASSES = 8

_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "PASSWORD", "_PWD", "_PASS", "PASSWD", "_AUTH")
# The working directories of a shell (POSIX): their names look like a password's, and each path holds the value.
_DIRECTORIES = frozenset({"PWD", "OLDPWD"})


class _Sign(NamedTuple):
    """A pattern that is matched `offset` bytes after the beginning of `text`."""

    text: bytes
    offset: int
    pattern: re.Pattern[bytes]


@cache
def _by_sign() -> tuple[_Sign, ...]:
    """Return every sign with its patterns. Compiled at the first line, which makes an opening 3 ms cheaper."""
    compiled = ((rule.signs, re.compile(rule.pattern, re.IGNORECASE)) for rule in RULES)
    return tuple(
        _Sign(sign.replace(b"|", b""), max(0, sign.find(b"|")), pattern)
        for signs, pattern in compiled
        for sign in signs
    )


def holds_secret(text: str) -> bool:
    """True if a text has the form of a secret, or names one."""
    return next(_secrets_in(text.encode("utf-8", "surrogatepass")), None) is not None


def secret_values(environ: Mapping[str, str], named: Collection[str] = ()) -> list[str]:
    """Return the values of variables with names of secrets, that look like one, or are `named`."""
    return [
        value
        for name, value in environ.items()
        if value and (name in named or (name not in _DIRECTORIES and _says_secret(name, value)))
    ]


def _says_secret(name: str, value: str) -> bool:
    return name.endswith(_ENDINGS) or holds_secret(f"{name}={value}")


class Redactor:
    """Replace secrets by `[redacted]`, keeping the names before them.

    `secrets` are exact values that this process knows (its own API keys). Those shorter than six characters
    are ignored: they would redact ordinary words.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known = Known.of(secrets)

    def lines(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        """Return each line without its secrets; they are searched together first, because nearly all have none."""
        together = b"\n".join(lines)
        suspicious = self._known.may_be_in(together) or _may_hold_secrets(together)
        return [self.line(line) for line in lines] if suspicious else lines

    def line(self, line: bytes) -> bytes:
        """Return `line` (UTF-8 text or one line of JSON) without its secrets; the same object when it has none."""
        return _settled(self.known(line), _without_formats)

    def known(self, text: bytes) -> bytes:
        """Return `text` without the exact values alone: for a text that may look like a secret and is none."""
        return _settled(text, self._known.taken_out)

    def text(self, text: str) -> str:
        """Return `text` without its secrets."""
        return self.line(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _may_hold_secrets(text: bytes) -> bool:
    """True if any sign occurs. A line end is in none, so this holds for lines together as for each of them."""
    return next(signless(text), None) is not None or bool(_signs().find_matches_as_indexes(text.lower()))


def _settled(text: bytes, step: Callable[[bytes], bytes]) -> bytes:
    """Return `text` after as many steps as change it; the same object when none does."""
    for _ in range(_MOST_PASSES):
        before, text = text, step(text)
        if text == before:
            return before
    return text


def _without_formats(line: bytes) -> bytes:
    found = [*_secrets_in(line), *signless(line)]
    return replaced(line, found) if found else line


def _secrets_in(line: bytes) -> Iterator[Span]:
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
    """Search all signs in one pass. Imported at the first line and not when a log is opened: it takes 2 ms."""
    from ahocorasick_rs import BytesAhoCorasick, Implementation

    return BytesAhoCorasick([sign.text for sign in _by_sign()], implementation=Implementation.DFA)
