"""Escape tags to sortable database keys.

A key has at most 120 bytes, because an index entry of PostgreSQL has at most 2,700 bytes. If an escaped tag is
longer, the key is the SHA-256 of the tag. The record always contains the complete tag.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

LONGEST = 120
_HASHED = b"%#"


@lru_cache(maxsize=4_096)
def escape(tag: str) -> bytes:
    """Return a tag as a key. The key has at most 120 bytes and no `|`, and different tags have different keys. Only
    the key of a digest begins with `%#`."""
    raw = tag.encode("utf-8", "surrogatepass")
    escaped = raw.replace(b"%", b"%25").replace(b"|", b"%7C")
    return escaped if len(escaped) <= LONGEST else _HASHED + hashlib.sha256(raw).hexdigest().encode()


def unescape(key: bytes) -> str | None:
    """Return the tag that belongs to a key. Return None if the key is a digest, because only the record contains
    the tag then."""
    if key.startswith(_HASHED):
        return None
    return key.replace(b"%7C", b"|").replace(b"%25", b"%").decode("utf-8", "surrogatepass")


def under(prefix: str) -> tuple[bytes, bytes]:
    """Return the range of the keys that begin with `prefix` (which ends with a colon). The range has a first key
    and an upper bound."""
    start = prefix.encode()
    # `;` is the byte that follows `:`
    return start, start[:-1] + b";"
