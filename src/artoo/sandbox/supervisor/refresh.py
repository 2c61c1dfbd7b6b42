"""Drop the kernel's caches of overlays, so that a sandbox sees the user's present files.

The arguments are the descriptor numbers of a mount namespace and of overlays. An unprivileged user has rights over
a namespace only after joining the user namespace that owns it. A process with threads cannot join it. Therefore
this is a separate program. It runs outside the sandbox's process namespace, so commands can neither see nor reach
it. It uses only the standard library.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import sys

_NEW_MOUNT, _NEW_USER = 0x00020000, 0x10000000
_GET_OWNER = 0xB701
_FSCONFIG, _FSPICK = 431, 433
_CLOSE_ON_EXEC, _EMPTY_PATH, _RECONFIGURE = 0x1, 0x8, 7
_LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Join the sandbox's user and mount namespaces, and refresh the overlays."""
    mounts, *overlays = map(int, sys.argv[1:])
    owner = fcntl.ioctl(mounts, _GET_OWNER)
    _check(_LIBC.setns(owner, _NEW_USER), "setns")
    _check(_LIBC.setns(mounts, _NEW_MOUNT), "setns")
    for overlay in overlays:
        refresh(overlay)


def refresh(overlay: int) -> None:
    """Reconfigure an overlay without any change, so that the kernel reads its lower directory again.

    Raises OSError.
    """
    picked = _LIBC.syscall(ctypes.c_long(_FSPICK), overlay, b"", _EMPTY_PATH | _CLOSE_ON_EXEC)
    _check(picked, "fspick")
    try:
        _check(_LIBC.syscall(ctypes.c_long(_FSCONFIG), picked, _RECONFIGURE, None, None, 0), "fsconfig")
    finally:
        os.close(picked)


def _check(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
