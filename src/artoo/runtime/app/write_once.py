"""A file of artoo's home that is made once and then only read: a key, a token, a name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from artoo.disk.whole import write_new


def made_once(path: Path, make: Callable[[], bytes]) -> bytes:
    """Return the content of the file, which is made by `make` the first time, for its owner only. Blocks.

    Two processes may come first at once, and one may be killed: the file is there whole or not at all, and a
    process that was not the first reads the first one's. Makes the directory too. Raises OSError.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        with suppress(FileExistsError):
            write_new(path, make())
    return path.read_bytes()
