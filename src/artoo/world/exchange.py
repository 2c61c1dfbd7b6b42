"""Renames that cannot lose what somebody else put there a moment ago: the kernel decides, not a look before.

put_new     gives a name to a thing only where nothing is
exchange    gives it the name of another thing, which is then where the first one was

Names are below directory descriptors. Where the system or the file system has no such renames, `put_new` links
(which is as exclusive), and `exchange` raises NotImplementedError: its caller looks, and renames at once.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache
from pathlib import Path

_NOREPLACE = 1
_EXCHANGE = 2
_MAC_EXCHANGE = 2
_MAC_NOREPLACE = 4
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
Place = tuple[int, str]
"""An open directory and a name in it."""


def put_new(source: Place, target: Place) -> None:
    """Moves `source` (no directory) to `target`, where nothing may be. Raises OSError: EEXIST, EXDEV, …"""
    number = _rename(source, target, _MAC_NOREPLACE if sys.platform == "darwin" else _NOREPLACE)
    if number in _UNSUPPORTED:
        os.link(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0], follow_symlinks=False)
        os.unlink(source[1], dir_fd=source[0])
    elif number:
        raise OSError(number, os.strerror(number), target[1])


def exchange(one: Place, other: Place) -> None:
    """Each gets the other's name, in one instant. Raises OSError: ENOENT, EXDEV, …; NotImplementedError."""
    number = _rename(one, other, _MAC_EXCHANGE if sys.platform == "darwin" else _EXCHANGE)
    if number in _UNSUPPORTED:
        raise NotImplementedError
    if number:
        raise OSError(number, os.strerror(number), other[1])


def can_exchange(directory: Path) -> bool:
    """Whether names on its file system can be exchanged: tried, as no table tells it. Raises OSError."""
    names = "one", "other"
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names:
            os.mkdir(name, 0o700, dir_fd=descriptor)
        try:
            exchange((descriptor, names[0]), (descriptor, names[1]))
        except NotImplementedError:
            return False
        finally:
            for name in names:
                os.rmdir(name, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    return True


def _rename(source: Place, target: Place, flags: int) -> int:
    """The error's number; 0 when it is done."""
    call = _call()
    if call is None:
        return errno.ENOSYS
    done = call(source[0], os.fsencode(source[1]), target[0], os.fsencode(target[1]), flags)
    return ctypes.get_errno() if done != 0 else 0


@cache
def _call() -> ctypes._NamedFuncPointer | None:  # pyright: ignore[reportPrivateUsage]
    """The C library's function, if it has it."""
    library = ctypes.CDLL(None, use_errno=True)
    try:
        call = library.renameatx_np if sys.platform == "darwin" else library.renameat2
    except AttributeError:
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    call.restype = ctypes.c_int
    return call
