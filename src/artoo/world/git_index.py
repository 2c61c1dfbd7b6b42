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
_TIMES = 40
"""In an entry: the end of what stat says (the mode is in it, at 24)."""
_EXTENDED = 0x4000
_FLAGS = 24
"""In what is kept of an entry: behind mode and object."""
_SPLIT = b"link"


def staged(content: bytes) -> bytes | None:
    """A text that is the same for indexes that stage the same; None for what is no index that we can read.

    Read are versions 2 and 3 with SHA-1 (gitformat-index); the others count byte by byte.
    """
    found = _read(content)
    if found is None:
        return None
    entries, extensions = found
    kept = (name + len(data).to_bytes(4, "big") + data for name, data in extensions if name not in _CACHES)
    return b"".join(chain(entries, kept))


def staged_by_path(content: bytes) -> dict[bytes, bytes] | None:
    """What it stages of each path; None for what `staged` does not read, and where a part is in another file."""
    found = _read(content)
    if found is None or any(name == _SPLIT for name, _ in found[1]):
        return None
    paths: dict[bytes, bytes] = {}
    for entry in found[0]:
        flags = int.from_bytes(entry[_FLAGS : _FLAGS + 2], "big")
        begin = _FLAGS + (4 if flags & _EXTENDED else 2)
        path = entry[begin:-1]
        paths[path] = paths.get(path, b"") + entry[:begin]  # one in conflict has several stages
    return paths


def _read(content: bytes) -> tuple[list[bytes], list[tuple[bytes, bytes]]] | None:
    """Entries and extensions of an index that is whole; None when it is not, or of another kind."""
    version, count = int.from_bytes(content[4:8], "big"), int.from_bytes(content[8:12], "big")
    body = content[:-_CHECKSUM]
    if not body.startswith(SIGNATURE) or version not in (2, 3):
        return None
    if content[-_CHECKSUM:] not in (hashlib.sha1(body, usedforsecurity=False).digest(), bytes(_CHECKSUM)):
        return None
    try:
        position, entries = _entries(body, count)
        return entries, list(_extensions(body, position))
    except ValueError:
        return None


def cached_trees(content: bytes, width: int) -> dict[bytes, str]:
    """The trees that the index remembers: the directory (empty: the top) to its object, as hexadecimal digits.

    `width`: of an object's name, in bytes. Raises ValueError when this is no index of version 2 or 3.
    """
    version, count = int.from_bytes(content[4:8], "big"), int.from_bytes(content[8:12], "big")
    if not content.startswith(SIGNATURE) or version not in (2, 3):
        raise ValueError("no index of version 2 or 3")
    body = content[:-width]
    position, _ = _entries(body, count, width)
    found: dict[bytes, str] = {}
    for name, data in _extensions(body, position):
        if name == b"TREE":
            found |= _trees(data, width)
    return found


def _trees(data: bytes, width: int) -> Iterator[tuple[bytes, str]]:
    """Each has its name, the number of its entries (negative: nothing is remembered of it) and of its subtrees."""
    position, open_above = 0, [(b"", 1)]
    while open_above:
        above, left = open_above.pop()
        if left == 0:
            continue
        open_above.append((above, left - 1))
        name_end = data.index(b"\0", position)
        line_end = data.index(b"\n", name_end)
        entries, subtrees = map(int, data[name_end + 1 : line_end].split(b" "))
        path = above + data[position:name_end]
        position = line_end + 1
        if entries >= 0:
            yield path, data[position : position + width].hex()
            position += width
        open_above.append((path + b"/" if path else b"", subtrees))


def _entries(body: bytes, count: int, width: int = _CHECKSUM) -> tuple[int, list[bytes]]:
    """Where they end, and of each what it stages. Raises ValueError when they are not as they should be."""
    position, found = _HEAD, list[bytes]()
    for _ in range(count):
        flags = position + _TIMES + width
        extended = bool(int.from_bytes(body[flags : flags + 2], "big") & _EXTENDED)
        begin = flags + (4 if extended else 2)
        end = body.index(b"\0", begin)
        found.append(body[position + 24 : position + 28] + body[position + _TIMES : end] + b"\0")
        position += ((end - position) // 8 + 1) * 8
    return position, found


def _extensions(body: bytes, position: int) -> Iterator[tuple[bytes, bytes]]:
    """Name and content of each. Raises ValueError when one is cut off."""
    while position < len(body):
        size = int.from_bytes(body[position + 4 : position + 8], "big")
        end = position + 8 + size
        if end > len(body):
            raise ValueError("an extension is cut off")
        yield body[position : position + 4], body[position + 8 : end]
        position = end
