"""Opens paths below a directory descriptor so that nothing outside of it can be reached.

On Linux `openat2` does it in one call: the descriptor is the root of the path (`RESOLVE_IN_ROOT`), and neither a
link nor a magic link of /proc is followed. Elsewhere, and on kernels before 5.6, the path is walked one step at a
time with O_NOFOLLOW. Both refuse a link in the path, so a process that swaps a directory for a link while artoo
reads gets an error, and never a file outside.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from functools import cache

from artoo.workspace.fs.stat import PASS_FLAGS, digest_file

O_PATH = getattr(os, "O_PATH", 0)
"""0 where there is none (macOS): then a link cannot be opened, only looked at from its directory."""

_OPENAT2 = 437
"""The number of the system call, equal on every architecture of Linux."""
_NO_MAGICLINKS, _NO_SYMLINKS, _IN_ROOT = 0x02, 0x04, 0x10
_RESOLVE = _NO_MAGICLINKS | _NO_SYMLINKS | _IN_ROOT
_MISSING = (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG)
"""What a kernel without the call, or a container that filters unknown calls, answers to a harmless one."""
_RETRY = (errno.EAGAIN, errno.EINTR)
"""EAGAIN: something was renamed while the kernel walked the path."""


class _How(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def open_beneath(root: int, path: str, flags: int, mode: int = 0) -> int:
    """Open `path` (relative to the root, or absolute in it). Raises OSError; ELOOP for a link in the path.

    With `O_PATH | O_NOFOLLOW` a link at the end is opened itself.
    """
    relative = path.strip("/") or "."
    if not _has_openat2():
        return _walk(root, relative, flags, mode)
    return _openat2(root, relative, flags, mode)


def open_parent(root: int, path: str) -> tuple[int, str]:
    """Open the directory that holds `path`, and return it with the last name ("." for the root itself)."""
    above, _, name = path.strip("/").rpartition("/")
    return open_beneath(root, above, PASS_FLAGS), name or "."


def stat_beneath(root: int, path: str) -> os.stat_result:
    """Return what is at `path`, a link at the end not followed. Raises OSError."""
    if O_PATH and _has_openat2():
        descriptor = _openat2(root, path.strip("/") or ".", O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, 0)
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)
    parent, name = open_parent(root, path)
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    finally:
        os.close(parent)


def readlink_beneath(root: int, path: str) -> str:
    """Return the text of the link at `path`. Raises OSError; EINVAL if it is no link."""
    parent, name = open_parent(root, path)
    try:
        return os.readlink(name, dir_fd=parent)
    finally:
        os.close(parent)


def digest_beneath(root: int, path: str, size: int) -> str:
    """Return the sha256 (hex) of the regular file at `path`, of about `size` bytes. Raises OSError."""
    parent, name = open_parent(root, path)
    try:
        return digest_file(parent, name, size)
    finally:
        os.close(parent)


def open_file_beneath(root: int, path: str) -> int:
    """Open the regular file at `path` for reading. Raises OSError; EINVAL for what is no regular file.

    A pipe or a device is not opened: that alone may have effects.
    """
    seen = stat_beneath(root, path)
    if not stat.S_ISREG(seen.st_mode):
        raise OSError(errno.EISDIR if stat.S_ISDIR(seen.st_mode) else errno.EINVAL, "not a regular file", path)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = open_beneath(root, path, flags)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):  # it may have been replaced meanwhile
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", path)


def _walk(root: int, relative: str, flags: int, mode: int) -> int:
    *above, name = relative.split("/")
    here = os.dup(root)
    try:
        for part in above:
            _require_name(part, relative)
            inner = os.open(part, PASS_FLAGS, dir_fd=here)
            os.close(here)
            here = inner
        if relative != ".":
            _require_name(name, relative)
        return os.open(name, flags | os.O_NOFOLLOW, mode, dir_fd=here)
    finally:
        os.close(here)


def _require_name(part: str, path: str) -> None:
    if part in ("", ".", ".."):
        raise OSError(errno.EINVAL, "the path is not resolved", path)


@cache
def _has_openat2() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        os.close(_openat2(-100, "/", O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, _NO_MAGICLINKS))
    except OSError as error:
        if error.errno in _MISSING:
            return False
        raise
    return True


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _openat2(root: int, path: str, flags: int, mode: int, resolve: int = _RESOLVE) -> int:
    how = _How(flags | os.O_CLOEXEC, mode if flags & os.O_CREAT else 0, resolve)
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
