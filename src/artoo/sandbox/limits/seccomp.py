"""Build the seccomp filter from `system_calls.txt`, with socket families and refused ioctl requests.

The filter is a program in classic BPF for x86_64 and aarch64. It is built without a library.

Read-only mounts and empty namespaces do not prevent every escape. For example, `connect()` on a UNIX socket reaches
a service. An io_uring opens sockets without passing the filter. All processes of a user share kernel keyrings.
Nested user namespaces allow mounting again. `system_calls.txt` lists the system calls and the rules for them. The
filter reads `struct seccomp_data {int nr; u32 arch; u64 ip; u64 args[6]}` (linux/seccomp.h).
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _ERRNO, _ASK = 0x7FFF0000, 0x00050000, 0x7FC00000
_NUMBER, _ARCHITECTURE, _ARGUMENT_0, _ARGUMENT_1, _ARGUMENT_1_HIGH = 0, 4, 16, 24, 28

_FAMILIES = (2, 10, 16)
_SOCKET_KIND_MASK, _DATAGRAM = 0xF, 2
_NEW_NAMESPACES = 0x7E020080
_X32 = 0x40000000

_OF_ITSELF = ("prlimit64", "sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr")
"""Calls whose first argument is a process id. Without a process namespace, only the value 0 (the caller) is
allowed."""
_PRIORITIES = ("setpriority", "ioprio_set")
"""Calls whose second argument is a process id."""
_REFUSED_REQUESTS = {
    "fcntl": (8, 10, 15),
    "ioctl": (0x8901, 0x8902, 0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40047602),
}
"""Requests of ioctl and fcntl that are refused. F_SETOWN, F_SETSIG, F_SETOWN_EX, FIOSETOWN and SIOCSPGRP make a
file send signals to any process of the user. FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR and FS_IOC_SETVERSION change the
attributes of every file that can be read."""
_LARGEST = {"shmget": 64 * 1024, "semget": 32}
"""The largest size that these calls may request. System V memory and semaphores persist without a process. With
these sizes, the kernel's own limits allow 4,096 memory segments (256 MiB) and 32,000 semaphore sets (130 MiB). For
comparison, databases request 56 bytes and 17 semaphores."""
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


@dataclass(frozen=True, slots=True)
class _Step:
    """One BPF instruction. Jumps are relative and count instructions."""

    code: int
    value: int
    if_true: int = 0
    if_false: int = 0

    def packed(self) -> bytes:
        return struct.pack("<HBBI", self.code, self.if_true, self.if_false, self.value)


@dataclass(frozen=True, slots=True)
class _Call:
    """A row of system_calls.txt, which explains `rule` at its beginning. `number` is None if this processor does
    not have the call."""

    rule: str
    name: str
    number: int | None


@lru_cache(maxsize=4)
def _calls(machine: str) -> dict[str, _Call]:
    """Read the table of calls in system_calls.txt for a processor."""
    column, _ = _ARCHITECTURES[machine]
    listed = Path(__file__).with_name("system_calls.txt").read_text("ascii").splitlines()
    rows = [line.split() for line in listed if line and not line.startswith("#")]
    numbered = ((rule, name, found[column]) for rule, name, *found in rows)
    return {name: _Call(rule, name, None if word == "-" else int(word)) for rule, name, word in numbered}


def supported(machine: str | None = None) -> bool:
    """True if a filter can be made for this processor."""
    return (machine or platform.machine()) in _ARCHITECTURES


def judged() -> dict[int, str]:
    """Return the calls that a filter without namespaces passes to the supervisor for a decision, by their number on
    this processor."""
    calls = _calls(platform.machine()).values()
    return {call.number: call.name for call in calls if call.rule == "judged" and call.number is not None}


@lru_cache(maxsize=4)
def filter_program(*, machine: str | None = None, without_namespaces: bool = False) -> bytes:
    """Return the filter, as an array of `struct sock_filter`.

    `without_namespaces`: true for a backend that has no namespaces. The filter then also refuses network sockets
    and operations on other processes. It lets the supervisor decide on signals and on changes of mode, owner and
    times. Raises KeyError on an unsupported processor.
    """
    machine = machine or platform.machine()
    _, audit = _ARCHITECTURES[machine]
    calls = _calls(machine)
    steps = [
        _Step(_LOAD, _ARCHITECTURE),
        _Step(_JUMP_EQUAL, audit, 1, 0),
        _refuse(errno.EPERM),
        _Step(_LOAD, _NUMBER),
    ]
    # The x32 interface has other numbers for the same calls, and the list below does not contain them.
    if machine == "x86_64":
        steps += [_Step(_JUMP_GREATER_EQUAL, _X32, 0, 1), _refuse(errno.EPERM)]
    answers = {"refuse": _ERRNO | errno.EPERM, "missing": _ERRNO | errno.ENOSYS}
    if without_namespaces:
        answers |= {"shared": _ERRNO | errno.EPERM, "judged": _ASK, "lacking": _ERRNO | errno.EOPNOTSUPP}
    for call in calls.values():
        if call.rule in answers and call.number is not None:
            steps += [_Step(_JUMP_EQUAL, call.number, 0, 1), _Step(_RETURN, answers[call.rule])]
    for name, body in _conditional(without_namespaces):
        number = calls[name].number
        if number is not None:
            steps += [_Step(_JUMP_EQUAL, number, 0, len(body)), *body]
    steps.append(_Step(_RETURN, _ALLOW))
    return b"".join(step.packed() for step in steps)


def _only_itself(argument: int) -> list[_Step]:
    """Allow a call only if its process argument is 0, which means the caller."""
    return [_Step(_LOAD, argument), _Step(_JUMP_EQUAL, 0, 1, 0), _refuse(errno.EPERM), _Step(_RETURN, _ALLOW)]


def _not_the_first(argument: int) -> list[_Step]:
    """Allow a call unless its process argument is 1, which means the supervisor. A command could otherwise starve
    the supervisor."""
    return [_Step(_LOAD, argument), _Step(_JUMP_EQUAL, 1, 0, 1), _refuse(errno.EPERM), _Step(_RETURN, _ALLOW)]


def _refuse(code: int) -> _Step:
    return _Step(_RETURN, _ERRNO | code)


def _conditional(without_namespaces: bool) -> Iterable[tuple[str, list[_Step]]]:
    """Yield the calls that are refused only for some arguments, each with its instructions. These end in a
    return."""
    families = () if without_namespaces else _FAMILIES
    socket = [_Step(_LOAD, _ARGUMENT_0)]
    for index, family in enumerate(families):
        socket.append(_Step(_JUMP_EQUAL, family, len(families) - index, 0))
    yield "socket", [*socket, _refuse(errno.EPERM), _Step(_RETURN, _ALLOW)]
    # A datagram socket of a pair can be connected to any path later, whereas a stream socket of a pair cannot.
    kind = [_Step(_LOAD, _ARGUMENT_1), _Step(_AND, _SOCKET_KIND_MASK), _Step(_JUMP_EQUAL, _DATAGRAM, 0, 1)]
    yield "socketpair", [*kind, _refuse(errno.EPERM), _Step(_RETURN, _ALLOW)]
    flags = [_Step(_LOAD, _ARGUMENT_0), _Step(_JUMP_SET, _NEW_NAMESPACES, 0, 1)]
    for name in ("clone", "unshare"):
        yield name, [*flags, _refuse(errno.EPERM), _Step(_RETURN, _ALLOW)]
    for name, largest in () if without_namespaces else _LARGEST.items():
        high = [_Step(_LOAD, _ARGUMENT_1_HIGH), _Step(_JUMP_EQUAL, 0, 1, 0), _refuse(errno.EINVAL)]
        low = [_Step(_LOAD, _ARGUMENT_1), _Step(_JUMP_GREATER_EQUAL, largest + 1, 0, 1), _refuse(errno.EINVAL)]
        yield name, [*high, *low, _Step(_RETURN, _ALLOW)]
    for name in _OF_ITSELF:
        yield name, _only_itself(_ARGUMENT_0) if without_namespaces else _not_the_first(_ARGUMENT_0)
    for name in () if without_namespaces else _PRIORITIES:
        yield name, _not_the_first(_ARGUMENT_1)
    for name, requests in _REFUSED_REQUESTS.items() if without_namespaces else ():
        refused = (step for one in requests for step in (_Step(_JUMP_EQUAL, one, 0, 1), _refuse(errno.EPERM)))
        yield name, [_Step(_LOAD, _ARGUMENT_1), *refused, _Step(_RETURN, _ALLOW)]
    # The flags of clone3 are in memory, which a filter cannot read. After the error ENOSYS, C libraries use clone
    # instead.
    yield "clone3", [_refuse(errno.ENOSYS)]
