"""Renames that cannot overwrite a file that another process put there a moment ago.

put_new     give a file a name that is free
exchange    swap the names of two files in one step; the caller then looks at what came out

Names are relative to directory descriptors. Where the system lacks these renames, `put_new` hard-links (which is as
exclusive), and `exchange` looks at the target and renames at once: then a save within microseconds is overwritten.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache

from artoo.workspace.files.walker import Place

_NOREPLACE = 1
_EXCHANGE = 2
_MAC_EXCHANGE = 2
_MAC_NOREPLACE = 4
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


def put_new(source: Place, target: Place) -> None:
    """Move `source` (no directory) to `target`, where nothing may be. Raises OSError: EEXIST, EXDEV, ..."""
    number = _rename(source, target, _MAC_NOREPLACE if sys.platform == "darwin" else _NOREPLACE)
    if number in _UNSUPPORTED:
        os.link(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0], follow_symlinks=False)
        os.unlink(source[1], dir_fd=source[0])
    elif number:
        raise OSError(number, os.strerror(number), target[1])


def exchange(one: Place, other: Place) -> bool:
    """Swap two names; return False if the system cannot do that. Raises OSError: ENOENT, EXDEV, ..."""
    number = _rename(one, other, _MAC_EXCHANGE if sys.platform == "darwin" else _EXCHANGE)
    if number in _UNSUPPORTED:
        return False
    if number:
        raise OSError(number, os.strerror(number), other[1])
    return True


def _rename(source: Place, target: Place, flags: int) -> int:
    """Return the number of the error, 0 for success."""
    call = _call()
    if call is None:
        return errno.ENOSYS
    done = call(source[0], os.fsencode(source[1]), target[0], os.fsencode(target[1]), flags)
    return ctypes.get_errno() if done != 0 else 0


@cache
def _call() -> ctypes._NamedFuncPointer | None:  # pyright: ignore[reportPrivateUsage]
    """Return the C library's function, if there is one."""
    library = ctypes.CDLL(None, use_errno=True)
    try:
        call = library.renameatx_np if sys.platform == "darwin" else library.renameat2
    except AttributeError:
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    call.restype = ctypes.c_int
    return call
