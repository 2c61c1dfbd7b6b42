"""What git's index says, without what git only remembers of the times of files.

`git status` writes the index anew whenever a file was touched, and prompts and editors run it all the time. So two
indexes are the same when they stage the same: modes, objects, flags and names, and all extensions but caches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import chain

INDEX = "index"
"""Its name, in every repository and linked worktree."""
SIGNATURE = b"DIRC"
LARGEST = 256 << 20

_CACHES = frozenset({b"TREE", b"UNTR", b"FSMN", b"EOIE", b"IEOT"})
_HEAD, _CHECKSUM = 12, 20
_TIMES, _FIXED = 40, 62
"""In an entry: the end of what stat says (the mode is in it, at 24), and the beginning of the name."""
_EXTENDED = 0x4000


def staged(content: bytes) -> bytes | None:
    """A text that is the same for indexes that stage the same; None for what is no index that we can read.

    Read are versions 2 and 3 with SHA-1 (gitformat-index); the others count byte by byte.
    """
    version, count = int.from_bytes(content[4:8], "big"), int.from_bytes(content[8:12], "big")
    body = content[:-_CHECKSUM]
    if not body.startswith(SIGNATURE) or version not in (2, 3):
        return None
    if content[-_CHECKSUM:] not in (hashlib.sha1(body, usedforsecurity=False).digest(), bytes(_CHECKSUM)):
        return None
    try:
        position, entries = _entries(body, count)
        return b"".join(chain(entries, _extensions(body, position)))
    except ValueError:
        return None


def _entries(body: bytes, count: int) -> tuple[int, list[bytes]]:
    """Where they end, and of each what it stages. Raises ValueError when they are not as they should be."""
    position, found = _HEAD, list[bytes]()
    for _ in range(count):
        extended = bool(int.from_bytes(body[position + 60 : position + 62], "big") & _EXTENDED)
        begin = position + _FIXED + (2 if extended else 0)
        end = body.index(b"\0", begin)
        found.append(body[position + 24 : position + 28] + body[position + _TIMES : end] + b"\0")
        position += ((end - position) // 8 + 1) * 8
    return position, found


def _extensions(body: bytes, position: int) -> Iterator[bytes]:
    while position < len(body):
        size = int.from_bytes(body[position + 4 : position + 8], "big")
        end = position + 8 + size
        if end > len(body):
            raise ValueError("an extension is cut off")
        if body[position : position + 4] not in _CACHES:
            yield body[position:end]
        position = end
