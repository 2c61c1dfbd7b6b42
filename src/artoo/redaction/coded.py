"""Find a value in hex, base64 and base32, in the forms that programs of these names write."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable

SHORTEST = 10
"""Of a value that is looked for otherwise than as it is: the letters of a word are in many texts."""

_ADDRESS_SAFE = bytes.maketrans(b"+/", b"-_")


def in_hex(raw: bytes) -> bytes:
    """Return the value in digits without gaps."""
    return raw.hex().encode()


def in_groups(raw: bytes) -> Iterable[bytes]:
    """Return the value in base64, also its form for addresses, and base32. Preceding bytes decide the grouping."""
    for before in range(3):
        inner = _inner(raw, before, 3, base64.b64encode)
        yield from dict.fromkeys((inner, inner.translate(_ADDRESS_SAFE)))
    for before in range(5):
        yield _inner(raw, before, 5, base64.b32encode)


def _inner(raw: bytes, before: int, group: int, coded: Callable[[bytes], bytes]) -> bytes:
    """Return the letters that are the value's own: those at the ends also belong to its neighbours."""
    letters = coded(bytes(before) + raw)
    bits = 6 if group == 3 else 5
    return letters[-(-8 * before // bits) : 8 * (before + len(raw)) // bits]
