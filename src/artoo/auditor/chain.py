"""Encode and parse one line of a hash chain, with `n`, `prev` and `hash`.

Each line contains the hash of the previous one, so that a line that was changed, removed or moved breaks the chain.

    {"n":17,"prev":"<sha256>","hash":"<sha256>", … the record … }

`n` counts from 1. `hash` is the sha256 of `n`, `prev` and the record as written. The first `prev` is 64 zeros.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import orjson

NOTHING = "0" * 64
"""The `prev` of the first line of a chain."""

_LINE = re.compile(rb'\{"n":(\d{1,18}),"prev":"([0-9a-f]{64})","hash":"([0-9a-f]{64})",(.*)\}', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a chain. It has the number of the chain's lines, and the hash of the last line."""

    count: int = 0
    hash: str = NOTHING


@dataclass(frozen=True, slots=True)
class Link:
    """One parsed line of a chain. `sound`: true if the hash in the line is that of the line itself."""

    number: int
    previous: str
    hash: str
    sound: bool
    record: bytes

    def fields(self) -> dict[str, object]:
        """Return the record as a mapping. Return an empty one if the line is no record of the Auditor."""
        try:
            found: object = orjson.loads(self.record)
        except orjson.JSONDecodeError:
            return {}
        return cast("dict[str, object]", found)


def add(head: Head, record: Mapping[str, object]) -> tuple[bytes, Head]:
    """Return the line that follows `head` in a chain (with its line end), and the new head.

    `record` must not be empty. It may contain JSON values, dates and nested mappings.
    """
    return add_encoded(head, orjson.dumps(record))


def add_encoded(head: Head, record: bytes) -> tuple[bytes, Head]:
    """Return the next line and the new head, as `add` does, for a record that is already encoded as a JSON
    object."""
    number = head.count + 1
    digest = _digest(number, head.hash, record)
    line = b'{"n":%d,"prev":"%s","hash":"%s",%s\n' % (number, head.hash.encode(), digest.encode(), record[1:])
    return line, Head(number, digest)


def link_of(line: bytes) -> Link | None:
    """Parse a line (without its line end) as a link. Return None if it is no link."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    number, previous, own, rest = int(match[1]), match[2].decode(), match[3].decode(), b"{" + match[4] + b"}"
    return Link(number, previous, own, _digest(number, previous, rest) == own, rest)


def _digest(number: int, previous: str, record: bytes) -> str:
    return hashlib.sha256(b"%d:%s:%s" % (number, previous.encode(), record)).hexdigest()
