"""Open and write paths below a directory descriptor with `openat2`, safe from links.

A path cannot lead out of the directory.

On Linux `openat2` does this in one call. The descriptor is the root of the path (`RESOLVE_IN_ROOT`), and neither
symlinks nor magic links of /proc are followed. On other systems, and on kernels before 5.6, the path is opened one
component at a time with O_NOFOLLOW. Both refuse a link in the path. If a process replaces a directory by a link
meanwhile, artoo therefore gets an error and never opens a file outside.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache

from artoo.contracts.errors import SandboxError
from artoo.workspace.fs.names import printable
from artoo.workspace.fs.stat import FILE_FLAGS, O_PATH, PASS_FLAGS, read_xattrs

_OPENAT2 = 437
"""The number of the system call, which is the same on every architecture of Linux."""
_NO_MAGICLINKS, _NO_SYMLINKS, _IN_ROOT = 0x02, 0x04, 0x10
_RESOLVE = _NO_MAGICLINKS | _NO_SYMLINKS | _IN_ROOT
_MISSING = (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG)
"""The errors that a harmless call gives if the kernel does not have this system call, or if a container filters
it."""
_RETRY = (errno.EAGAIN, errno.EINTR)
"""Errors after which the call is repeated. EAGAIN means that a path was renamed during the call."""
_LONGEST = 1_000
"""The maximum number of characters (of at most four bytes) of a path in one call. Commands can make longer paths,
which are opened in parts."""
_NEW_MODE, _NEW_DIRECTORY_MODE = 0o666, 0o777
"""The usual modes of new files and directories, from which the umask removes permissions."""


class _How(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def open_beneath(root: int, path: str, flags: int) -> int:
    """Open `path` (relative to the root, or absolute in it). Raises OSError, with ELOOP for a link in the path."""
    relative = path.strip("/") or "."
    short = len(relative) < _LONGEST
    return _openat2(root, relative, flags) if short and _has_openat2() else _walk(root, relative, flags)


@contextmanager
def parent_of(root: int, path: str) -> Generator[tuple[int, str]]:
    """Open the directory that contains `path`. Yield it with the last component of the path ("." for the root
    itself)."""
    above, _, name = path.strip("/").rpartition("/")
    descriptor = open_beneath(root, above, PASS_FLAGS)
    try:
        yield descriptor, name or "."
    finally:
        os.close(descriptor)


def stat_beneath(root: int, path: str) -> os.stat_result:
    """Return the status of `path`. A link as the last component is not followed. Raises OSError."""
    with parent_of(root, path) as (parent, name):
        return os.stat(name, dir_fd=parent, follow_symlinks=False)


def readlink_beneath(root: int, path: str) -> str:
    """Return the text of the link at `path`. Raises OSError, with EINVAL if it is no link."""
    with parent_of(root, path) as (parent, name):
        return os.readlink(name, dir_fd=parent)


def open_file_beneath(root: int, path: str) -> int:
    """Open the regular file at `path` for reading. Raises OSError, with EINVAL if it is not a regular file.

    A pipe or a device is not opened, because opening it may have effects.
    """
    # The type is checked first, because opening a pipe would block, and opening a device may have effects.
    mode = stat_beneath(root, path).st_mode
    if stat.S_ISREG(mode):
        descriptor = open_beneath(root, path, FILE_FLAGS)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):  # a process may have replaced the file after the check
            return descriptor
        os.close(descriptor)
    raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, "not a regular file", path)


def write_beneath(root: int, path: str, content: bytes) -> None:
    """Write the file at a resolved path atomically, and make its parent directories if needed.

    The new content is written to a temporary file in the same directory, which is then renamed. Mode, owner and
    attributes are preserved. Blocking. Raises SandboxError if the path cannot be a file, and OSError (full disk, no
    permission).
    """
    parts = path.strip("/").split("/")
    shown = printable(f"/{path.strip('/')}")
    for end in range(1, len(parts)):
        try:
            _make_directory(root, "/".join(parts[:end]))
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            raise SandboxError(f"{shown} cannot be written: {parts[end - 1]} is not a directory") from error
    with parent_of(root, path) as (parent, name):
        _replace(parent, name, shown, content)


def _make_directory(root: int, path: str) -> None:
    with suppress(FileNotFoundError):
        os.close(open_beneath(root, path, PASS_FLAGS))
        return
    with parent_of(root, path) as (parent, name), suppress(FileExistsError):
        os.mkdir(name, _NEW_DIRECTORY_MODE, dir_fd=parent)


def _replace(parent: int, name: str, shown: str, content: bytes) -> None:
    try:
        old = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise SandboxError(f"{shown} is not a regular file: choose another path")
    temporary = f".artoo-new-{uuid.uuid4().hex}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, _NEW_MODE if old is None else 0o600, dir_fd=parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if old is not None:
                _dress(parent, name, descriptor, old)
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=parent)
        raise


def _dress(parent: int, name: str, descriptor: int, old: os.stat_result) -> None:
    """Give the new file the owner, attributes and mode of the old one."""
    # this user may replace another user's file, but may not give a file to that user
    with suppress(PermissionError):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    for key, value in read_xattrs(parent, name):
        with suppress(OSError):
            os.setxattr(f"/proc/self/fd/{descriptor}", key, value)
    # last, because setting owner and attributes may change the mode
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _walk(root: int, relative: str, flags: int) -> int:
    here = os.dup(root)
    try:
        *above, name = relative.split("/") if relative != "." else ("",)
        if ".." in (*above, name):
            raise OSError(errno.EINVAL, "the path is not resolved", relative)
        for part in above:
            inner = os.open(part or ".", PASS_FLAGS, dir_fd=here)
            os.close(here)
            here = inner
        return os.open(name or ".", flags | os.O_NOFOLLOW, dir_fd=here)
    finally:
        os.close(here)


@cache
def _has_openat2() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        os.close(_openat2(-100, "/", O_PATH | os.O_DIRECTORY, _NO_MAGICLINKS))
    except OSError as error:
        if error.errno in _MISSING:
            return False
        raise
    return True


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _openat2(root: int, path: str, flags: int, resolve: int = _RESOLVE) -> int:
    how = _How(flags | os.O_CLOEXEC, 0, resolve)
    raw = os.fsencode(path)
    if b"\0" in raw:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    for _ in range(100):
        found = _library().syscall(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(root),
            ctypes.c_char_p(raw),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if found >= 0:
            return found
        number = ctypes.get_errno()
        if number not in _RETRY:
            raise OSError(number, os.strerror(number), path)
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
