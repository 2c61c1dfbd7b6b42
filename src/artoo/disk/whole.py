"""Write a file atomically by a temporary file and a rename, durably if required.

A reader sees the whole file or none, whenever the writer dies.

The content is written to a temporary file in the same directory, `.NAME.artoo-new-0`. This file is renamed when it
is complete. The writer locks the temporary file. If the writer is killed, the next writer of the same file finds
the temporary file unlocked and removes it. If several processes write the same file at a time, their temporary
files have the numbers from 0 on. Therefore the number of temporary files that are left over is at most the number
of writers that were killed at the same time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

Content = bytes | Iterable[bytes]

_OWNERS = 0o600
# Maximum number of concurrent writers of one file that get a numbered name. Further writers get a random name that
# no later writer cleans up.
_AT_ONCE = 16
# Maximum number of bytes of a file's name that are part of the temporary name. A longer name is replaced by its
# digest.
_LONGEST = 200
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_text(path: Path) -> str:
    """Return the text of the file. Return an empty text if the file does not exist. Raises OSError,
    UnicodeDecodeError."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""


def write_whole(path: Path, content: Content, *, mode: int | None = None, sync: bool = True) -> None:
    """Replace the content of the file atomically, or create the file. This function blocks. Raises OSError.

    `mode` gives the permissions. If it is None, an old file keeps its permissions, and a new file can only be
    accessed by its owner. If `sync` is true, the content is on disk before the rename, so that a power failure
    leaves either the old or the new content. If it is false, a power failure may leave an empty file. This is for
    content that can be made again."""
    with _beside(path, content, _mode_of(path) if mode is None else mode, sync=sync) as fresh:
        fresh.replace(path)


def write_durably(path: Path, content: Content, *, mode: int | None = None) -> None:
    """Write as `write_whole`, but durably, so that a power failure cannot restore the old content. Raises
    OSError."""
    write_whole(path, content, mode=mode)
    sync_directory(path.parent)


def write_new(path: Path, content: Content, *, mode: int = _OWNERS, sync: bool = True) -> None:
    """Create the file atomically. If there are concurrent calls, only the first one succeeds. Raises
    FileExistsError, OSError."""
    with _beside(path, content, mode, sync=sync) as fresh:
        os.link(fresh, path)


def made_once(path: Path, make: Callable[[], bytes]) -> bytes:
    """Return the content of a file. If the file is missing, it is created with the content `make()`, and only its
    owner can access it. This function blocks.

    The file is created atomically, so concurrent processes read the same content, even if one of them is killed.
    The directory is created too. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        with suppress(FileExistsError):
            write_new(path, make())
    return path.read_bytes()


def sync_directory(path: Path) -> None:
    """Sync the names in a directory to disk. This function blocks. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_files(directory: Path) -> None:
    """Sync first the files in a directory to disk, and then their names. This function blocks. Raises OSError."""
    for entry in os.scandir(directory):
        if not entry.is_file(follow_symlinks=False):
            continue
        with suppress(FileNotFoundError):
            descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    sync_directory(directory)


def _mode_of(path: Path) -> int:
    with suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode)
    return _OWNERS


@contextmanager
def _beside(path: Path, content: Content, mode: int, *, sync: bool) -> Generator[Path]:
    """Return a context with a new file of the directory that has the content. At its end, the file is removed
    unless it was renamed."""
    descriptor, fresh = _made_beside(path)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.writelines((content,) if isinstance(content, bytes) else content)
            os.fchmod(descriptor, mode)
            if sync:
                file.flush()
                os.fsync(descriptor)
        yield fresh
    finally:
        try:
            _remove(fresh, descriptor)
        finally:
            os.close(descriptor)  # This releases the lock. It is done only after the file has its final name.


def _made_beside(path: Path) -> tuple[int, Path]:
    """Create and lock an empty file next to `path`. Return its descriptor and path. Raises OSError."""
    name = os.fsencode(path.name)
    told = path.name if len(name) <= _LONGEST else hashlib.sha256(name).hexdigest()
    for number in range(_AT_ONCE):
        fresh = path.parent / f".{told}.artoo-new-{number}"
        descriptor = _made(fresh)
        if descriptor is None and _without_owner(fresh):
            descriptor = _made(fresh)
        if descriptor is not None:
            return descriptor, fresh
    descriptor, other = tempfile.mkstemp(dir=path.parent, prefix=f".{told}.artoo-new-")
    return descriptor, Path(other)


def _made(fresh: Path) -> int | None:
    """Create a file and lock it. Return None if the file exists. Raises OSError."""
    try:
        descriptor = os.open(fresh, _FLAGS | os.O_CREAT | os.O_EXCL, _OWNERS)
    except FileExistsError:
        return None
    # Another process may lock the file briefly in order to remove it. If the file system has no locks, no process
    # removes it.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    if _is(fresh, descriptor):
        return descriptor
    os.close(descriptor)  # In this case, another process removed the file before it was locked.
    return None


def _without_owner(fresh: Path) -> bool:
    """Remove the temporary file of a dead writer of this user, which is not locked any more. Return True if the
    file is gone."""
    try:
        descriptor = os.open(fresh, _FLAGS)
    except FileNotFoundError:
        return True
    except OSError:  # This is a link, a directory or a file of another user, so it must not be removed.
        return False
    try:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode) or seen.st_uid != os.geteuid():
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(fresh, descriptor)
    except OSError:  # A running writer has locked the file, or the file system has no locks.
        return False
    else:
        return True
    finally:
        os.close(descriptor)


def _remove(fresh: Path, descriptor: int) -> None:
    """Remove the name `fresh` of an open and locked file, if the name still belongs to that file."""
    if _is(fresh, descriptor):
        fresh.unlink(missing_ok=True)


def _is(path: Path, descriptor: int) -> bool:
    """Return whether the path and the descriptor are the same file."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
