"""Work inside a sandbox's mount and network namespaces that its commands must not be able to do. Standard library.

    python -I -S mounter.py CHANNEL MOUNT_NAMESPACE NETWORK_NAMESPACE ROOT...

All but the roots are numbers of descriptors. CHANNEL is one end of a UNIX socket (SOCK_SEQPACKET); each packet is
one request, answered by one packet, which is `ok` or the number and the name of an error:

    refresh    drop what the kernel has cached of the overlays' lower directories (the user's files)
    listen     open a socket that listens on a fresh port of the sandbox's 127.0.0.1, and send it along

It runs outside the sandbox's process namespace, so commands neither see nor reach it, and the system-call filter
does not apply to it. It ends when artoo closes the socket or dies; until then it holds the namespaces alive.

A plain user has rights over a namespace only after joining the user namespace that owns it, which a process with
threads cannot do: hence a program of its own.
"""

from __future__ import annotations

import _socket
import ctypes
import fcntl
import os
import struct
import sys

_NEW_MOUNT, _NEW_USER, _NEW_NETWORK = 0x00020000, 0x10000000, 0x40000000
_GET_OWNER = 0xB701
_FSCONFIG, _FSPICK = 431, 433
_CLOSE_ON_EXEC, _EMPTY_PATH, _RECONFIGURE = 0x1, 0x8, 7
_WAITING = 128
_PER_USER = ("max_inotify_instances", "max_inotify_watches", "max_fanotify_groups", "max_fanotify_marks")
_LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Join the namespaces and answer requests until the socket is closed."""
    channel = _socket.socket(fileno=int(sys.argv[1]))
    mounts, network = int(sys.argv[2]), int(sys.argv[3])
    _join(mounts, network)
    roots = [os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for root in sys.argv[4:]]
    channel.send(b"ok")
    while request := channel.recv(64):
        descriptors: list[int] = []
        try:
            if request == b"refresh":
                for root in roots:
                    _refresh(root)
            elif request == b"listen":
                descriptors = [_listen()]
            answer = b"ok"
        except OSError as error:
            answer = b"%d %s" % (error.errno or 0, os.fsencode(error.strerror or ""))
        rights = struct.pack(f"{len(descriptors)}i", *descriptors)
        channel.sendmsg([answer], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)] if descriptors else [])
        for descriptor in descriptors:
            os.close(descriptor)


def _join(mounts: int, network: int) -> None:
    """Enter the namespaces, by way of the user namespace that owns them unless this process is in it already."""
    owner = fcntl.ioctl(mounts, _GET_OWNER)
    if not os.path.samestat(os.fstat(owner), os.stat("/proc/self/ns/user")):
        allowed = _allowed_per_user()
        _check(_LIBC.setns(owner, _NEW_USER), "setns")
        _leave_half(allowed)
    _check(_LIBC.setns(network, _NEW_NETWORK), "setns")
    _check(_LIBC.setns(mounts, _NEW_MOUNT), "setns")
    for descriptor in (owner, mounts, network):
        os.close(descriptor)


def _allowed_per_user() -> dict[str, int]:
    """Return how many watches of each kind the kernel allows a user; nothing where it does not say."""
    found: dict[str, int] = {}
    for name in _PER_USER:
        try:
            with open(f"/proc/sys/user/{name}", "rb") as file:
                found[name] = int(file.read())
        except (OSError, ValueError):
            continue
    return found


def _leave_half(allowed: dict[str, int]) -> None:
    """Leave the user half of these watches, which a sandbox could use up: they count for all of a user's processes.

    The limits that this writes are those of the user namespace that the process has joined.
    """
    for name, most in allowed.items():
        try:
            with open(f"/proc/sys/user/{name}", "wb", buffering=0) as file:
                file.write(b"%d" % (most // 2))
        except OSError:
            continue  # /proc is read-only here, as in some containers


def _refresh(root: int) -> None:
    """Reconfigure an overlay without changing anything: the kernel looks at its lower directory again."""
    picked = _LIBC.syscall(ctypes.c_long(_FSPICK), root, b"", _EMPTY_PATH | _CLOSE_ON_EXEC)
    _check(picked, "fspick")
    try:
        _check(_LIBC.syscall(ctypes.c_long(_FSCONFIG), picked, _RECONFIGURE, None, None, 0), "fsconfig")
    finally:
        os.close(picked)


def _listen() -> int:
    listening = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listening.bind(("127.0.0.1", 0))
    listening.listen(_WAITING)
    return listening.detach()


def _check(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


if __name__ == "__main__":
    main()
