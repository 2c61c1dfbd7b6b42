"""Confine one command with Landlock and a system-call filter, and judge the calls that Landlock does not restrict.

The supervisor forks a process for each command, which confines itself for ever and becomes the program. Landlock
says nothing of modes, owners and times, and before Linux 6.12 nothing of signals. Without these calls neither
`chmod +x` nor `git init`, `touch`, `tar` and `kill` work, so the filter passes them to the supervisor (seccomp user
notification), which is not confined. For files it opens what the call names, checks that this lies where commands
may write, and makes the change through its own descriptor: nothing can be exchanged in between. For signals it
checks that the target is a process below itself, and lets the kernel go on.

Standard library only: the supervisor is a program of its own.
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

_LIBC = ctypes.CDLL(None, use_errno=True)
_NO_NEW_PRIVILEGES, _DROP_BOUND = 38, 24
_ROOT_KEEPS = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4  # CHOWN, DAC_OVERRIDE, FOWNER, FSETID

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHARACTER_DEVICE, _MAKE_BLOCK_DEVICE, _TRUNCATE, _IOCTL = 1 << 6, 1 << 11, 1 << 14, 1 << 15
_ALL_TCP, _ABSTRACT_SOCKETS = 0x3, 0x1
_RIGHTS_ON_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL

_SECCOMP, _SET_FILTER = {"x86_64": 317, "aarch64": 277}, 1
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5

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


class _Refused(Exception):
    def __init__(self, number: int) -> None:
        self.number = number


class Confinement:
    """The confinement of all commands of a sandbox. `calls` gives the name of each judged call by its number."""

    def __init__(
        self, readable: list[str], writable: list[str], devices: list[str], steps: str, calls: dict[str, str]
    ) -> None:
        self._paths = (readable, writable, devices)
        self._writable = [os.path.realpath(path) for path in writable]
        self._filter = bytes.fromhex(steps)
        self._calls = {int(number): name for number, name in calls.items()}

    @classmethod
    def read(cls, descriptor: int) -> Confinement:
        """Read a plan (`backends.landlock`): JSON with the arguments."""
        with open(descriptor, "rb") as file:
            return cls(**json.load(file))

    def confine(self, report: _socket.socket) -> None:
        """Confine this process for ever, and send what hears of its judged calls, or the reason that it failed."""
        try:
            if os.geteuid() == 0:
                _drop_capabilities(_ROOT_KEEPS)
            _restrict_files(*self._paths)
            listener = _install_filter(self._filter)
        except OSError as error:
            report.send(f"{error.errno or 0} {error.strerror or error}".encode())
            os._exit(126)
        report.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", listener))])
        os.close(listener)

    def listener(self, report: _socket.socket) -> int:
        """Return what `confine` sent. Raises OSError."""
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
    """Return the flags of the answer if the signal goes to processes of commands only."""
    caller, target = _process_of(thread), _signed(arguments[0])
    if name != "kill" or target > 0:
        targets = [target]
    elif target == -1:  # the kernel would also signal the user's own processes
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
    """True if the process (or thread) is below the supervisor."""
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
        with suppress(OSError):
            if os.getpgid(pid) == group:
                members.append(pid)
    return members


# --- Landlock, capabilities and the filter -----------------------------------------------------------------------


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def _prctl(option: int, value: int) -> None:
    _check(_LIBC.prctl(option, value, 0, 0, 0), f"prctl {option}")


def _restrict_files(readable: list[str], writable: list[str], devices: list[str]) -> None:
    """Allow to read and execute below `readable`, to list everywhere, and to change files below `writable`.

    All else is refused for this process and its descendants, for ever, TCP and abstract sockets as well where the
    kernel knows how.
    """
    version = max(0, _LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1))
    if version == 0:
        raise OSError("the kernel has no Landlock, or it is switched off")
    rights = _known_rights(version)
    size = 8 if version < 4 else 16 if version < 6 else 24
    attributes = struct.pack("QQQ", rights, _ALL_TCP, _ABSTRACT_SOCKETS)[:size]
    ruleset = _check(_LIBC.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0), "landlock ruleset")
    change = rights & ~(_MAKE_CHARACTER_DEVICE | _MAKE_BLOCK_DEVICE)
    groups = (
        (readable, _EXECUTE | _READ | _LIST),
        (["/"], _LIST),
        (writable, change),
        (devices, _READ | _WRITE | _IOCTL),
    )
    for paths, access in groups:
        for path in paths:
            _allow(ruleset, path, access & rights)
    _prctl(_NO_NEW_PRIVILEGES, 1)
    _check(_LIBC.syscall(_RESTRICT_SELF, ruleset, 0), "landlock restrict")
    os.close(ruleset)


def _known_rights(version: int) -> int:
    newest = 13 if version < 2 else 14 if version < 3 else 15 if version < 5 else 16
    return (1 << newest) - 1


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # removed meanwhile, or not visible to this user: then nothing there is allowed
        return
    try:
        if not os.path.isdir(f"/proc/self/fd/{descriptor}"):
            access &= _RIGHTS_ON_FILES
        rule = struct.pack("=Qi", access, descriptor)
        _check(_LIBC.syscall(_ADD_RULE, ruleset, 1, rule, 0), f"landlock rule for {path}")
    finally:
        os.close(descriptor)


def _drop_capabilities(kept: int) -> None:
    """Give up all capabilities outside the mask `kept`; no later exec brings one back."""
    _prctl(_NO_NEW_PRIVILEGES, 1)
    for capability in range(64):
        if not kept >> capability & 1 and _LIBC.prctl(_DROP_BOUND, capability, 0, 0, 0) < 0:
            break  # the kernel knows no higher one
    header, held = struct.pack("Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    _check(_LIBC.capget(header, held), "capget")
    permitted = struct.unpack("6I", held.raw)[1] & kept
    _check(_LIBC.capset(header, struct.pack("6I", permitted, permitted, 0, 0, 0, 0)), "capset")


def _install_filter(program: bytes) -> int:
    """Install a seccomp filter and return the descriptor that hears of the calls it passes on."""

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    steps = ctypes.create_string_buffer(program, len(program))
    loaded = Filter(len(program) // 8, ctypes.addressof(steps))
    _prctl(_NO_NEW_PRIVILEGES, 1)
    number = _SECCOMP[os.uname().machine]
    # Without "wait killable" (Linux before 5.19) a signal that arrives meanwhile makes the command repeat the call.
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        listener = _LIBC.syscall(number, _SET_FILTER, flags, ctypes.byref(loaded))
        if listener >= 0:
            return listener
    return _check(listener, "seccomp")
