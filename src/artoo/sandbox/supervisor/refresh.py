"""Let a sandbox see the user's files as they are now: drop the kernel's caches of its overlays.

The arguments are numbers of descriptors: of a mount namespace and of overlays. A plain user has rights over a
namespace only after joining the user namespace that owns it, which a process with threads cannot do: for them
this is a program of its own. It runs outside the sandbox's process namespace, so commands neither see nor reach
it. Standard library only.
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
_PER_USER = ("max_inotify_instances", "max_inotify_watches", "max_fanotify_groups", "max_fanotify_marks")
_LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Join the sandbox's user and mount namespaces, bound what a sandbox could use up, and refresh the overlays."""
    mounts, *overlays = map(int, sys.argv[1:])
    owner = fcntl.ioctl(mounts, _GET_OWNER)
    allowed = {name: _number(f"/proc/sys/user/{name}") for name in _PER_USER}
    _check(_LIBC.setns(owner, _NEW_USER), "setns")
    for name, most in allowed.items():
        _leave_half(f"/proc/sys/user/{name}", most)
    _check(_LIBC.setns(mounts, _NEW_MOUNT), "setns")
    for overlay in overlays:
        refresh(overlay)


def refresh(overlay: int) -> None:
    """Reconfigure an overlay without changing anything: the kernel looks at its lower directory again.

    Raises OSError.
    """
    picked = _LIBC.syscall(ctypes.c_long(_FSPICK), overlay, b"", _EMPTY_PATH | _CLOSE_ON_EXEC)
    _check(picked, "fspick")
    try:
        _check(_LIBC.syscall(ctypes.c_long(_FSCONFIG), picked, _RECONFIGURE, None, None, 0), "fsconfig")
    finally:
        os.close(picked)


def _number(path: str) -> int:
    try:
        with open(path, "rb") as file:
            return int(file.read())
    except (OSError, ValueError):  # a kernel without this limit
        return 0


def _leave_half(path: str, allowed: int) -> None:
    """Leave the user half of these watches: those of a sandbox count for all of a user's processes.

    The limit is that of the user namespace that this process has joined.
    """
    try:
        with open(path, "wb", buffering=0) as file:
            file.write(b"%d" % (allowed // 2))
    except OSError:
        return  # /proc is read-only here, as in some containers, or the kernel has no such limit


def _check(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
