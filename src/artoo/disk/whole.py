"""Write files atomically: a reader sees the whole file or none, whenever the process dies.

The content is written next to the file, as `.NAME.artoo-new-0`, and gets the file's name when all of it is there.
The writer holds a lock on it. A process that is killed in between leaves its partial file; the next writer of the
same file finds that no process holds it, and removes it. Several writers of one file at once take the numbers from
0 on. So at most as many partial files are left as writers of the file were killed at one time.
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
# Writers of one file at one time that find a name in the row; any more get one that is not looked for later.
_AT_ONCE = 16
# Bytes of a file's name that are used in the name of the new one; a longer name is replaced by its digest.
_LONGEST = 200
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_text(path: Path) -> str:
    """Return the file's text, empty when the file does not exist. Raises OSError, UnicodeDecodeError."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""


def write_whole(path: Path, content: Content, *, mode: int | None = None, sync: bool = True) -> None:
    """Replace the file by one with this content, or create it. Blocks. Raises OSError.

    `mode`: its permissions; None: those of the old one, and of a new one its owner's alone. `sync`: the content is
    on disk before it gets the name, so that a power cut leaves the old content or the new; without it, for what can
    be made again, it may leave an empty file.
    """
    with _beside(path, content, _mode_of(path) if mode is None else mode, sync=sync) as fresh:
        fresh.replace(path)


def write_durably(path: Path, content: Content, *, mode: int | None = None) -> None:
    """Write as `write_whole`, and durably: no later power cut restores the old content. Blocks. Raises OSError."""
    write_whole(path, content, mode=mode)
    sync_directory(path.parent)


def write_new(path: Path, content: Content, *, mode: int = _OWNERS, sync: bool = True) -> None:
    """Create the file; of several concurrent calls the first succeeds. Blocks. Raises FileExistsError, OSError."""
    with _beside(path, content, mode, sync=sync) as fresh:
        os.link(fresh, path)


def made_once(path: Path, make: Callable[[], bytes]) -> bytes:
    """Return the content of a file that is made by `make` the first time, for its owner only. Blocking.

    Two processes may come first at once, and one may be killed: the file is there whole or not at all, and the
    other process reads it. The directory is made too. Raises OSError.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        with suppress(FileExistsError):
            write_new(path, make())
    return path.read_bytes()


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable. Blocks. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_files(directory: Path) -> None:
    """Make the files in a directory durable, and then their names. Blocks. Raises OSError."""
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
    """Write the content to a new file of the directory; at the end, remove the file unless it was renamed."""
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
            os.close(descriptor)  # and with it the lock: not before the file has its name


def _made_beside(path: Path) -> tuple[int, Path]:
    """Create an empty file next to `path`, hold it by a lock, and return it with its path. Raises OSError."""
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
    """Create a file and lock it; None when one exists. Raises OSError."""
    try:
        descriptor = os.open(fresh, _FLAGS | os.O_CREAT | os.O_EXCL, _OWNERS)
    except FileExistsError:
        return None
    # Only a process that wants to remove it may hold it, for a moment. Without locks, no process removes it.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    if _is(fresh, descriptor):
        return descriptor
    os.close(descriptor)  # it was taken for one that no process holds, in the moment before it was held
    return None


def _without_owner(fresh: Path) -> bool:
    """Remove the file of a dead writer: one of this user which no process holds. Return whether it is gone."""
    try:
        descriptor = os.open(fresh, _FLAGS)
    except FileNotFoundError:
        return True
    except OSError:  # a link, a directory, another user's: none of ours
        return False
    try:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode) or seen.st_uid != os.geteuid():
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(fresh, descriptor)
    except OSError:  # held by a writer that is at work, or no locks are to be had
        return False
    else:
        return True
    finally:
        os.close(descriptor)


def _remove(fresh: Path, descriptor: int) -> None:
    """Remove the name of an open file that is locked, if the file still has it."""
    if _is(fresh, descriptor):
        fresh.unlink(missing_ok=True)


def _is(path: Path, descriptor: int) -> bool:
    """Check whether the path is this very file."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
