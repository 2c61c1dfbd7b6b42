"""Makes the edge's listening socket inside a command's network; also a stand-alone program (standard library only).

    python -I -S inside.py FD

A socket stays in the network that it was made in, whoever holds it. So it is made inside before the command starts
and accepted on outside: nothing of ours runs in there, and the command finds a port and no process behind it.

Root joins the network in a thread of its own (a thread's network is that thread's alone). Anybody else has rights
in it only by joining its user namespace first, which a process with threads cannot: then this is run as a program,
gets the pid of the command's first process as text on the UNIX socket FD, and sends the listening socket back. It
starts with each such command, so it imports little: `socket` alone would double its time.
"""

from __future__ import annotations

import _socket
import ctypes
import fcntl
import os
import struct
import sys

PORT = 3128
"""Where the edge listens, in a network that nobody else is in."""

_USER, _NETWORK, _GET_OWNER = 0x10000000, 0x40000000, 0xB701
_WAITING = 128


def join(pid: int, *, user_namespace: bool) -> None:
    """Moves this thread into the network of a process; first, if wanted, into the user namespace that owns it.

    That need not be the one that the process is in by now. Raises OSError.
    """
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if user_namespace:
            owner = fcntl.ioctl(network, _GET_OWNER)
            try:
                _enter(owner, _USER)
            finally:
                os.close(owner)
        _enter(network, _NETWORK)
    finally:
        os.close(network)


def _enter(namespace: int, kind: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, kind) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"setns: {os.strerror(code)}")


def listen() -> int:
    """A socket that listens in this thread's network, whose loopback device may still be down. Raises OSError."""
    listening = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listening.bind(("", PORT))
    listening.listen(_WAITING)
    return listening.detach()


def main() -> None:
    through = _socket.socket(fileno=int(sys.argv[1]))
    pid = through.recv(32)
    if pid:
        join(int(pid), user_namespace=True)
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", listen()))
        through.sendmsg([b"."], [rights])


if __name__ == "__main__":
    main()
