"""A file of artoo's home that is made once and then only read: a key, a token, a name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def made_once(path: Path, make: Callable[[], bytes]) -> bytes:
    """What the file holds; `make`'s content the first time, for its owner only. Blocks.

    Two processes may come first at once, and one may be killed: the file is there whole or not at all, and whoever
    was not the first reads the first one's. Makes the directory too. Raises OSError.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        _bring(path, make())
    return path.read_bytes()


def _bring(path: Path, content: bytes) -> None:
    """Makes it, unless another process has."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)
    except FileExistsError:
        pass
    finally:
        Path(name).unlink()
