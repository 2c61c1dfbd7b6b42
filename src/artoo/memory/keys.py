"""The store's key schema (v0.8 specification, R5), with what LMDB and hostile tags ask for.

    m|id                  record (JSON)
    x|space|entity|id     evidence index, packed signal
    l|level|id            level index
    r|id                  last recalled, RFC 3339
    a|space|entity        running sums
    c|space|entity|id     rules of a pair (so that finding a rule never scans evidence)
    t|task|id             what a task has taught
    i|intent|space|entity pairs that worked for an intent
    d|name                the Dreamer's cursors and marks
    h|dream               its last reports
    p|id                  proposals for the T layer
    q|id                  records that could not be read, set aside by repair

Tags are escaped so that `|` only ever separates. LMDB keys end at 511 bytes, so a tag whose escaped form is
longer than 120 bytes is replaced by its SHA-256; the record holds it whole.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from artoo.contracts.tags import Pair

LONGEST_PART = 120
_HASHED = b"%#"


def escape(tag: str) -> bytes:
    """A tag as a key part: injective, without `|`, at most 120 bytes. `%#` only ever starts a digest."""
    raw = tag.encode("utf-8", "surrogatepass")
    escaped = raw.replace(b"%", b"%25").replace(b"|", b"%7C")
    if len(escaped) <= LONGEST_PART:
        return escaped
    return _HASHED + hashlib.sha256(raw).hexdigest().encode()


def unescape(part: bytes) -> str | None:
    """The tag behind a key part; None when only its digest is there (the record knows)."""
    if part.startswith(_HASHED):
        return None
    return part.replace(b"%7C", b"|").replace(b"%25", b"%").decode("utf-8", "surrogatepass")


def pair_part(pair: Pair) -> bytes:
    """`space|entity`, escaped."""
    return tags_part(pair.space, pair.entity)


@lru_cache(maxsize=4_096)
def tags_part(space: str, entity: str) -> bytes:
    """`space|entity`, escaped. Remembered: the writer meets the same pairs again and again."""
    return escape(space) + b"|" + escape(entity)


def record(megram_id: str) -> bytes:
    """m|id"""
    return b"m|" + megram_id.encode()


def evidence(part: bytes, megram_id: str) -> bytes:
    """x|space|entity|id"""
    return b"x|" + part + b"|" + megram_id.encode()


def level(name: str, megram_id: str) -> bytes:
    """l|level|id"""
    return b"l|" + name.encode() + b"|" + megram_id.encode()


def recalled(megram_id: str) -> bytes:
    """r|id"""
    return b"r|" + megram_id.encode()


def sums(part: bytes) -> bytes:
    """a|space|entity"""
    return b"a|" + part


def rule(part: bytes, megram_id: str) -> bytes:
    """c|space|entity|id"""
    return b"c|" + part + b"|" + megram_id.encode()


def taught(task_id: str, megram_id: str) -> bytes:
    """t|task|id"""
    return b"t|" + escape(task_id) + b"|" + megram_id.encode()


def worked(intent: str, part: bytes) -> bytes:
    """i|intent|space|entity"""
    return b"i|" + escape(intent) + b"|" + part


def split_last(key: bytes) -> tuple[bytes, str]:
    """The part of a key between its family and its last component, and that component: (`space|entity`, id)."""
    head, _, tail = key[2:].rpartition(b"|")
    return head, tail.decode()


def mark(name: str) -> bytes:
    """d|name"""
    return b"d|" + escape(name)


def report(dream_id: str) -> bytes:
    """h|dream"""
    return b"h|" + dream_id.encode()


def proposal(proposal_id: str) -> bytes:
    """p|id"""
    return b"p|" + proposal_id.encode()
