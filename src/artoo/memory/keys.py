"""Turn tags into keys that a database can sort, hold and find, whatever a tag holds.

A key is at most 120 bytes (a PostgreSQL index ends at 2,700): a tag whose escaped form is longer is replaced by its
SHA-256, and the record holds it whole.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

LONGEST = 120
_HASHED = b"%#"


@lru_cache(maxsize=4_096)
def escape(tag: str) -> bytes:
    """Return a tag as a key: injective, without `|`, at most 120 bytes. `%#` only ever starts a digest."""
    raw = tag.encode("utf-8", "surrogatepass")
    escaped = raw.replace(b"%", b"%25").replace(b"|", b"%7C")
    return escaped if len(escaped) <= LONGEST else _HASHED + hashlib.sha256(raw).hexdigest().encode()


def unescape(key: bytes) -> str | None:
    """Return the tag behind a key; None when only its digest is there (the record knows)."""
    if key.startswith(_HASHED):
        return None
    return key.replace(b"%7C", b"|").replace(b"%25", b"%").decode("utf-8", "surrogatepass")


def under(prefix: str) -> tuple[bytes, bytes]:
    """Return the range of keys that begin with `prefix`, which ends with a colon: from, and up to."""
    start = prefix.encode()
    # `;` is the next byte after `:`.
    return start, start[:-1] + b";"
