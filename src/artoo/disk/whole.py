"""Files that are there whole or not at all, whoever reads them meanwhile and whenever the process dies.

The content is written beside the file, under a name that nobody else has, and gets the file's name when all of it
is there. A process that is killed in between leaves what it had written under the other name: `.new.` and a random
ending.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

Content = bytes | Iterable[bytes]

_OWNERS = 0o600


def read_text(path: Path) -> str:
    """The file's text, empty when it is not there. Raises OSError, UnicodeDecodeError."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""


def write_whole(path: Path, content: Content, *, mode: int | None = None, sync: bool = True) -> None:
    """Puts the file with this content in the place of the old one, if there is one. Blocks. Raises OSError.

    `mode`: its permissions; None: those of the old one, and of a new one its owner's alone. `sync`: the content is
    on disk before it gets the name, so that a power cut leaves the old content or the new; without it, for what can
    be made again, it may leave an empty file.
    """
    with _beside(path, content, _mode_of(path) if mode is None else mode, sync=sync) as fresh:
        fresh.replace(path)


def write_durably(path: Path, content: Content, *, mode: int | None = None) -> None:
    """As `write_whole`; when it returns no power cut brings the old content back. Blocks. Raises OSError."""
    write_whole(path, content, mode=mode)
    sync_directory(path.parent)


def write_new(path: Path, content: Content, *, mode: int = _OWNERS, sync: bool = True) -> None:
    """Makes the file; of several that do it at once one is the first. Blocks. Raises FileExistsError, OSError."""
    with _beside(path, content, mode, sync=sync) as fresh:
        os.link(fresh, path)


def sync_directory(path: Path) -> None:
    """Makes the names in a directory durable. Blocks. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode_of(path: Path) -> int:
    with suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode)
    return _OWNERS


@contextmanager
def _beside(path: Path, content: Content, mode: int, *, sync: bool) -> Generator[Path]:
    """The content in a file of the same directory, which is gone at the end unless it has another name by then."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new.")
    fresh = Path(name)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 (of a descriptor)
            file.writelines((content,) if isinstance(content, bytes) else content)
            os.fchmod(descriptor, mode)
            if sync:
                file.flush()
                os.fsync(descriptor)
        yield fresh
    finally:
        fresh.unlink(missing_ok=True)
