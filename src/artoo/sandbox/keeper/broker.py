"""Decide the system calls that Landlock does not restrict, one by one. Standard library only.

Landlock says nothing of modes, owners and times, and before Linux 6.12 nothing of signals. Without these calls
neither `chmod +x` nor `git init`, `touch`, `tar` and `kill` work, so the filter passes them to this broker (seccomp
user notification), which runs outside the confinement. For files it opens what the call names, checks that this
lies where commands may write, and makes the change through its own descriptor: nothing can be exchanged in between.
For signals it checks that the target is a process of a command, and lets the kernel go on.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import struct
from typing import NamedTuple

_LIBC = ctypes.CDLL(None, use_errno=True)
_RECEIVE, _SEND, _IS_VALID, _CONTINUE = 0xC0502100, 0xC0182101, 0x40082102, 1
_CURRENT_DIRECTORY, _NO_FOLLOW, _EMPTY_PATH = -100, 0x100, 0x1000
_PAGE, _LONGEST_PATH, _TIMES_SIZE = 4096, 4096, 32


class _FileCall(NamedTuple):
    """Which arguments of a call name the file, and where its values begin. `always` are flags that it implies."""

    what: str
    directory: int | None
    path: int | None
    values: int
    flags: int | None = None
    always: int = 0


_FILES = {
    "chmod": _FileCall("mode", None, 0, 1),
    "fchmod": _FileCall("mode", 0, None, 1),
    "fchmodat": _FileCall("mode", 0, 1, 2),
    "fchmodat2": _FileCall("mode", 0, 1, 2, 3),
    "chown": _FileCall("owner", None, 0, 1),
    "lchown": _FileCall("owner", None, 0, 1, always=_NO_FOLLOW),
    "fchown": _FileCall("owner", 0, None, 1),
    "fchownat": _FileCall("owner", 0, 1, 2, 4),
    "utimensat": _FileCall("times", 0, 1, 2, 3),
}
_SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
BROKERED = (*_SIGNALS, *_FILES)
"""The names of the calls that a filter may pass to a broker."""


class _Refused(Exception):
    def __init__(self, number: int) -> None:
        self.number = number


class Broker:
    """Answers the calls of one sandbox. `calls` gives the name of each call by its number."""

    def __init__(self, listener: int, supervisor: int, writable: list[str], calls: dict[int, str]) -> None:
        self.listener = listener
        self._supervisor = supervisor
        self._writable = [os.path.realpath(path) for path in writable]
        self._calls = calls

    def answer(self) -> None:
        """Receive one call and answer it."""
        received = bytearray(80)  # struct seccomp_notif
        try:
            fcntl.ioctl(self.listener, _RECEIVE, received)
        except OSError:  # the caller was killed meanwhile
            return
        call, thread, _, number, _, _ = struct.unpack_from("=QIIiIQ", received)
        arguments = struct.unpack_from("=6Q", received, 32)
        failure, flags = 0, 0
        try:
            name = self._calls[number]
            if name in _FILES:
                self._change_file(call, thread, _FILES[name], arguments)
            else:
                flags = self._check_signal(thread, name, arguments)
        except _Refused as refused:
            failure = -refused.number
        except OSError as error:
            failure = -(error.errno or errno.EPERM)
        with contextlib.suppress(OSError):  # the caller was killed meanwhile
            fcntl.ioctl(self.listener, _SEND, struct.pack("=QqiI", call, 0, failure, flags))

    def _change_file(self, call: int, thread: int, how: _FileCall, arguments: tuple[int, ...]) -> None:
        values = arguments[how.values :]
        times = _read_memory(thread, values[0], _TIMES_SIZE) if how.what == "times" and values[0] else None
        descriptor = _open(thread, how, arguments)
        try:
            # The thread may have ended, and its number may belong to another process by now.
            fcntl.ioctl(self.listener, _IS_VALID, struct.pack("=Q", call))
            opened = f"/proc/self/fd/{descriptor}"
            place = os.readlink(opened)
            if not any(place == root or place.startswith(root + "/") for root in self._writable):
                raise _Refused(errno.EPERM)
            if how.what == "mode":
                os.chmod(opened, values[0] & 0o7777)
            elif how.what == "owner":
                os.chown(opened, _signed(values[0]), _signed(values[1]))
            elif _LIBC.utimensat(_CURRENT_DIRECTORY, opened.encode(), times, 0) < 0:
                raise _Refused(ctypes.get_errno())
        finally:
            os.close(descriptor)

    def _check_signal(self, thread: int, name: str, arguments: tuple[int, ...]) -> int:
        """Return the flags of the answer if the signal goes to processes of commands only."""
        caller, target = _process_of(thread), _signed(arguments[0])
        if name != "kill" or target > 0:
            targets = [target]
        elif target == -1:  # the kernel would also signal the user's own processes
            for pid in _pids():
                if pid != caller and self._is_command(pid):
                    with contextlib.suppress(OSError):
                        os.kill(pid, _signed(arguments[1]))
            return 0
        else:
            targets = _group(os.getpgid(caller) if target == 0 else -target)
        if not targets or not all(os.path.exists(f"/proc/{pid}") for pid in targets):
            raise _Refused(errno.ESRCH)
        if not all(pid == caller or self._is_command(pid) for pid in targets):
            raise _Refused(errno.EPERM)
        return _CONTINUE

    def _is_command(self, pid: int) -> bool:
        """True if the process (or thread) is below the supervisor."""
        while pid > 1:
            try:
                with open(f"/proc/{pid}/stat", "rb") as file:
                    pid = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                return False
            if pid == self._supervisor:
                return True
        return False


def _open(thread: int, how: _FileCall, arguments: tuple[int, ...]) -> int:
    """Open what a call names, as the thread that made it would."""
    flags = how.always | (0 if how.flags is None else arguments[how.flags])
    number = _CURRENT_DIRECTORY if how.directory is None else _signed(arguments[how.directory])
    directory = f"/proc/{thread}/cwd" if number == _CURRENT_DIRECTORY else f"/proc/{thread}/fd/{number}"
    address = 0 if how.path is None else arguments[how.path]
    name = _read_string(thread, address) if address else b""
    if not name:
        if address and not flags & _EMPTY_PATH:
            raise _Refused(errno.ENOENT)
        return os.open(directory, os.O_PATH | os.O_CLOEXEC)
    for own in (b"/proc/self", b"/proc/thread-self"):  # of the caller, not of this process
        if name == own or name.startswith(own + b"/"):
            name = b"/proc/%d" % thread + name[len(own) :]
    opening = os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if flags & _NO_FOLLOW else 0)
    if name.startswith(b"/"):
        return os.open(name, opening)
    base = os.open(directory, os.O_PATH | os.O_CLOEXEC)
    try:
        return os.open(name, opening, dir_fd=base)
    finally:
        os.close(base)


def _signed(argument: int) -> int:
    """Return the lower half of a register as a C int."""
    return ctypes.c_int(argument & 0xFFFFFFFF).value


def _read_memory(thread: int, address: int, size: int) -> bytes:
    with open(f"/proc/{thread}/mem", "rb", buffering=0) as memory:
        try:
            memory.seek(address)
            return memory.read(size)
        except (OSError, OverflowError):
            raise _Refused(errno.EFAULT) from None


def _read_string(thread: int, address: int) -> bytes:
    """Read a path, page by page: the page after its end may not exist."""
    found = b""
    while b"\0" not in found:
        if len(found) >= _LONGEST_PATH:
            raise _Refused(errno.ENAMETOOLONG)
        at = address + len(found)
        found += _read_memory(thread, at, _PAGE - at % _PAGE)
    return found.partition(b"\0")[0]


def _process_of(thread: int) -> int:
    with open(f"/proc/{thread}/status", "rb") as file:
        return int(file.read().partition(b"Tgid:")[2].split(None, 1)[0])


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _group(group: int) -> list[int]:
    """Return the members of a process group."""
    members: list[int] = []
    for pid in _pids():
        with contextlib.suppress(OSError):
            if os.getpgid(pid) == group:
                members.append(pid)
    return members
