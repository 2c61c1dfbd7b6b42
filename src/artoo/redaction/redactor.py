"""The redactor of log lines, which applies all rules, and collects secret values of environment variables.

Redaction recognises secrets by their form, so it gives no guarantee: a secret that looks like a word is only found
if its exact value is given. Redacting a text again changes nothing. It works on the bytes of an encoded line, and
matches patterns only near certain literals, because most lines have none and a prompt of many kilobytes must take
only microseconds.

A line of JSON stays JSON with the same structure, which `replacing.py` ensures.
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
# Maximum number of passes over a text. Removing one secret may reveal another one next to it, or may join the parts
# of another one.
_MOST_PASSES = 8

_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "PASSWORD", "_PWD", "_PASS", "PASSWD", "_AUTH")
# Variables for the working directories of a shell (POSIX). Their names (such as PWD) look like names of passwords.
_DIRECTORIES = frozenset({"PWD", "OLDPWD"})


class _Sign(NamedTuple):
    """A literal `text`, and the pattern that is matched `offset` bytes after the literal's beginning."""

    text: bytes
    offset: int
    pattern: re.Pattern[bytes]


@cache
def _by_sign() -> tuple[_Sign, ...]:
    """Return every sign together with its pattern. The patterns are compiled at the first line, which makes opening
    a log 3 ms faster."""
    compiled = ((rule.signs, re.compile(rule.pattern, re.IGNORECASE)) for rule in RULES)
    return tuple(
        _Sign(sign.replace(b"|", b""), max(0, sign.find(b"|")), pattern)
        for signs, pattern in compiled
        for sign in signs
    )


def holds_secret(text: str) -> bool:
    """Return whether a text contains a secret, recognised by its form or by its name."""
    return next(_secrets_in(text.encode("utf-8", "surrogatepass")), None) is not None


def secret_values(environ: Mapping[str, str], named: Collection[str] = ()) -> list[str]:
    """Return the values of the variables that have a name of a secret, look like a secret, or are in `named`."""
    return [
        value
        for name, value in environ.items()
        if value and (name in named or (name not in _DIRECTORIES and _says_secret(name, value)))
    ]


def _says_secret(name: str, value: str) -> bool:
    return name.endswith(_ENDINGS) or holds_secret(f"{name}={value}")


class Redactor:
    """Replaces secrets by `[redacted]`, but keeps the names before them.

    `secrets` contains exact values that this process knows, such as its own API keys. Values with less than six
    characters are ignored, because they would redact ordinary words."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known = Known.of(secrets)

    def lines(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        """Return each line without its secrets. All lines are searched together first, because most of them have no
        secret."""
        together = b"\n".join(lines)
        suspicious = self._known.may_be_in(together) or _may_hold_secrets(together)
        return [self.line(line) for line in lines] if suspicious else lines

    def line(self, line: bytes) -> bytes:
        """Return `line` without its secrets. `line` is text in UTF-8 or one line of JSON. If it has no secret, the
        same object is returned."""
        return _settled(self.known(line), _without_formats)

    def known(self, text: bytes) -> bytes:
        """Return `text` without the exact values only. This is for text that may look like a secret but is none."""
        return _settled(text, self._known.taken_out)

    def text(self, text: str) -> str:
        """Return `text` without its secrets."""
        return self.line(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _may_hold_secrets(text: bytes) -> bool:
    """Return whether any sign occurs in the text. No sign contains a line end, so several lines can be checked
    together."""
    return next(signless(text), None) is not None or bool(_signs().find_matches_as_indexes(text.lower()))


def _settled(text: bytes, step: Callable[[bytes], bytes]) -> bytes:
    """Apply `step` to `text` until it changes nothing. If nothing is ever changed, return the same object."""
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
    """Return a search that finds all signs in one pass. The import for it takes 2 ms, so it is only done at the
    first line."""
    from ahocorasick_rs import BytesAhoCorasick, Implementation

    return BytesAhoCorasick([sign.text for sign in _by_sign()], implementation=Implementation.DFA)
