"""Confine a command with Landlock, and judge its chmod, chown, utime and kill calls.

A system-call filter passes these calls to the supervisor for a decision.

The supervisor forks a process for each command. This process confines itself permanently and then executes the
program. Landlock does not control modes, owners and times, nor, before Linux 6.12, signals. If these calls were
refused, `chmod +x`, `git init`, `touch`, `tar` and `kill` would fail. The filter therefore passes them to the
supervisor (seccomp user notification), which is not confined. For a call about a file, the supervisor opens the
file and checks that it is in a writable directory. It makes the change through its own descriptor, so that the file
cannot be exchanged in between. For a signal, it checks that the target is one of its own descendants, and lets the
kernel continue the call.

Only the standard library is used, because the supervisor is a separate program.
"""

from __future__ import annotations

import _socket
import ctypes
import errno
import fcntl
import json
import os
import struct
from contextlib import suppress
from typing import NamedTuple

from artoo.sandbox.supervisor.restricting import drop_capabilities, install_filter, restrict_files

_LIBC = ctypes.CDLL(None, use_errno=True)
_ROOT_KEEPS = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4  # numbers of CHOWN, DAC_OVERRIDE, FOWNER and FSETID

_RECEIVE, _SEND, _IS_VALID, _CONTINUE = 0xC0502100, 0xC0182101, 0x40082102, 1
_CURRENT_DIRECTORY, _NO_FOLLOW, _EMPTY_PATH = -100, 0x100, 0x1000
_PAGE, _LONGEST_PATH, _TIMES_SIZE = 4096, 4096, 32


class _FileCall(NamedTuple):
    """The positions of those arguments of a call that name the file, and of the first value. `always`: flags that
    the call implies without naming them."""

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


class _Refused(Exception):
    def __init__(self, number: int) -> None:
        self.number = number


class Confinement:
    """The confinement of all commands of a sandbox. `calls`: the names of the calls about which the supervisor
    decides, by their numbers."""

    def __init__(
        self, readable: list[str], writable: list[str], devices: list[str], steps: str, calls: dict[str, str]
    ) -> None:
        self._paths = (readable, writable, devices)
        self._writable = [os.path.realpath(path) for path in writable]
        self._filter = bytes.fromhex(steps)
        self._calls = {int(number): name for number, name in calls.items()}

    @classmethod
    def read(cls, descriptor: int) -> Confinement:
        """Read a plan that `backends.copying` wrote. It is JSON with the arguments of this class."""
        with open(descriptor, "rb") as file:
            return cls(**json.load(file))

    def confine(self, report: _socket.socket) -> None:
        """Confine this process permanently. Then send the descriptor that receives its passed calls, or an error
        message."""
        try:
            if os.geteuid() == 0:
                drop_capabilities(_ROOT_KEEPS)
            restrict_files(*self._paths)
            listener = install_filter(self._filter)
        except OSError as error:
            report.send(f"{error.errno or 0} {error.strerror or error}".encode())
            os._exit(126)
        report.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", listener))])
        os.close(listener)

    def listener(self, report: _socket.socket) -> int:
        """Receive the descriptor that `confine` sent. Raises OSError if it sent an error."""
        said, rights, _, _ = report.recvmsg(4096, _socket.CMSG_SPACE(4))
        if rights:
            (listener,) = struct.unpack("i", rights[0][2][:4])
            os.set_inheritable(listener, False)
            return listener
        number, _, reason = (said or b"0 its first process was killed").decode("utf-8", "replace").partition(" ")
        raise OSError(int(number), reason, reason)

    def answer(self, listener: int) -> None:
        """Receive one call and answer it."""
        received = bytearray(80)  # struct seccomp_notif
        try:
            fcntl.ioctl(listener, _RECEIVE, received)
        except OSError:  # the caller was killed meanwhile
            return
        call, thread, _, number, _, _ = struct.unpack_from("=QIIiIQ", received)
        arguments = struct.unpack_from("=6Q", received, 32)
        failure, flags = 0, 0
        try:
            name = self._calls[number]
            if name in _FILES:
                self._change_file(listener, call, thread, _FILES[name], arguments)
            else:
                flags = _check_signal(thread, name, arguments)
        except _Refused as refused:
            failure = -refused.number
        except OSError as error:
            failure = -(error.errno or errno.EPERM)
        with suppress(OSError):  # the caller was killed meanwhile
            fcntl.ioctl(listener, _SEND, struct.pack("=QqiI", call, 0, failure, flags))

    def _change_file(
        self, listener: int, call: int, thread: int, how: _FileCall, arguments: tuple[int, ...]
    ) -> None:
        # The times are read before the file is opened, in the same order as the kernel does.
        values = arguments[how.values :]
        times = _read_memory(thread, values[0], _TIMES_SIZE) if how.what == "times" and values[0] else None
        descriptor = _open(thread, how, arguments)
        try:
            # The thread may have ended, and its number may belong to another process by now.
            fcntl.ioctl(listener, _IS_VALID, struct.pack("=Q", call))
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


def _check_signal(thread: int, name: str, arguments: tuple[int, ...]) -> int:
    """Return the flags of the answer. Raises _Refused unless the signal goes only to processes of commands."""
    caller, target = _process_of(thread), _signed(arguments[0])
    if name != "kill" or target > 0:
        targets = [target]
    elif target == -1:  # the kernel would also send the signal to the user's own processes
        for pid in _pids():
            if pid != caller and _is_command(pid):
                with suppress(OSError):
                    os.kill(pid, _signed(arguments[1]))
        return 0
    else:
        targets = _group(os.getpgid(caller) if target == 0 else -target)
    if not targets or not all(os.path.exists(f"/proc/{pid}") for pid in targets):
        raise _Refused(errno.ESRCH)
    if not all(pid == caller or _is_command(pid) for pid in targets):
        raise _Refused(errno.EPERM)
    return _CONTINUE


def _is_command(pid: int) -> bool:
    """True if the process (or thread) is a descendant of the supervisor."""
    while pid > 1:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            return False
        if pid == os.getpid():
            return True
    return False


def _open(thread: int, how: _FileCall, arguments: tuple[int, ...]) -> int:
    """Open the file that a call names. Directories and descriptors are those of the thread that made the call."""
    flags = how.always | (0 if how.flags is None else arguments[how.flags])
    number = _CURRENT_DIRECTORY if how.directory is None else _signed(arguments[how.directory])
    directory = f"/proc/{thread}/cwd" if number == _CURRENT_DIRECTORY else f"/proc/{thread}/fd/{number}"
    address = 0 if how.path is None else arguments[how.path]
    name = _read_string(thread, address) if address else b""
    if not name:
        if address and not flags & _EMPTY_PATH:
            raise _Refused(errno.ENOENT)
        return os.open(directory, os.O_PATH | os.O_CLOEXEC)
    for own in (b"/proc/self", b"/proc/thread-self"):  # these numbers must mean the caller and not this process
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
    """Read a path from a thread's memory, page by page, because the page after its end may not exist."""
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
        with suppress(OSError):
            if os.getpgid(pid) == group:
                members.append(pid)
    return members
