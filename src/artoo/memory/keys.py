"""Escape tags to sortable database keys.

A key is at most 120 bytes, because a PostgreSQL index entry is limited to 2,700 bytes. If the escaped tag is
longer, the key is its SHA-256. The record always contains the full tag.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

LONGEST = 120
_HASHED = b"%#"


@lru_cache(maxsize=4_096)
def escape(tag: str) -> bytes:
    """Return a tag as a key: injective, without `|`, at most 120 bytes. Only digests begin with `%#`."""
    raw = tag.encode("utf-8", "surrogatepass")
    escaped = raw.replace(b"%", b"%25").replace(b"|", b"%7C")
    return escaped if len(escaped) <= LONGEST else _HASHED + hashlib.sha256(raw).hexdigest().encode()


def unescape(key: bytes) -> str | None:
    """Return the tag of a key. None if the key is a digest; the tag is then only in the record."""
    if key.startswith(_HASHED):
        return None
    return key.replace(b"%7C", b"|").replace(b"%25", b"%").decode("utf-8", "surrogatepass")


def under(prefix: str) -> tuple[bytes, bytes]:
    """Return the range of keys that begin with `prefix` (which ends with a colon): first key, and upper bound."""
    start = prefix.encode()
    # `;` is the next byte after `:`.
    return start, start[:-1] + b";"
