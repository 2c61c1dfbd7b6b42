"""Make the system-call filter of commands, as classic BPF for x86_64 and aarch64, without a library.

Read-only mounts and empty namespaces leave some ways out: `connect()` on a UNIX socket reaches a service, an
io_uring opens sockets past a filter, all processes of a user share kernel keyrings, nested user namespaces bring
back mounting. The filter answers these with EPERM (ENOSYS where programs then take another way). The filter reads
`struct seccomp_data {int nr; u32 arch; u64 ip; u64 args[6]}` (linux/seccomp.h).
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENT_0, _ARGUMENT_1, _ARGUMENT_1_HIGH = 0, 4, 16, 24, 28

_FAMILIES = (2, 10, 16)
_SOCKET_KIND_MASK, _DATAGRAM = 0xF, 2
_NEW_NAMESPACES = 0x7E020080
_X32 = 0x40000000

# name: (x86_64, aarch64); None where the architecture has no such call
_CALLS: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "clone": (56, 220),
    "clone3": (435, 435),
    "unshare": (272, 97),
    "setns": (308, 268),
    "ptrace": (101, 117),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "vmsplice": (278, 75),
    "memfd_secret": (447, 447),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "process_vm_writev": (311, 271),
    "setpriority": (141, 140),
    "shmget": (29, 194),
    "prlimit64": (302, 261),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
}
_OF_ITSELF = ("prlimit64", "sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr")
"""Calls whose first argument names a process; without a process namespace only the caller may be named, as 0."""
_PRIORITIES = ("setpriority", "ioprio_set")
"""Calls whose second argument names a process."""
_CONDITIONAL = frozenset({"socket", "socketpair", "clone", "clone3", "unshare", *_OF_ITSELF})
_LARGEST = {"shmget": 64 * 1024, "semget": 32}
"""System V memory and semaphores stay without a process that holds them: 4,096 of the first (256 MiB), 32,000 of
the second (130 MiB) are what the kernel's own bounds then leave. Databases ask for 56 bytes, and 17 semaphores."""
_NO_NAMESPACES = [
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "fchown",
    "lchown",
    "fchownat",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "setxattrat",
    "removexattrat",
    "utime",
    "utimes",
    "futimesat",
    "utimensat",
    "kill",
    "tkill",
    "tgkill",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    "pidfd_send_signal",
    "process_vm_writev",
    "setpriority",
    "ioprio_set",
    "migrate_pages",
    "move_pages",
    "process_madvise",
    "process_mrelease",
    "shmget",
    "semget",
    "msgget",
    "mq_open",
]
_ALWAYS = tuple(name for name in _CALLS if name not in _CONDITIONAL and name not in _NO_NAMESPACES)
_WITHOUT = frozenset({"io_uring_setup", "io_uring_enter", "io_uring_register", "vmsplice", "memfd_secret"})
"""The last two keep memory that shows in no process and no file: a pipe's hold on a huge page, secret pages."""

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


@dataclass(frozen=True, slots=True)
class _Step:
    """One instruction; jumps are counted in instructions that follow."""

    code: int
    value: int
    if_true: int = 0
    if_false: int = 0

    def packed(self) -> bytes:
        return struct.pack("<HBBI", self.code, self.if_true, self.if_false, self.value)


def supported(machine: str | None = None) -> bool:
    """True if a filter can be made for this processor."""
    return (machine or platform.machine()) in _ARCHITECTURES


def numbers(names: Iterable[str]) -> dict[int, str]:
    """Return the numbers of calls on this processor, for those that it has."""
    column, _ = _ARCHITECTURES[platform.machine()]
    return {number: name for name in names if (number := _CALLS[name][column]) is not None}


def architecture() -> int:
    """Return this processor's number as a filter sees it."""
    return _ARCHITECTURES[platform.machine()][1]


@lru_cache(maxsize=4)
def filter_program(*, machine: str | None = None, without_namespaces: bool = False) -> bytes:
    """Return the filter, as an array of `struct sock_filter`.

    `without_namespaces` is for backends that have no namespaces of their own. It also refuses every network socket,
    changes of mode, owner, attributes and times, signals, and everything else that acts on another process. Raises
    KeyError on an unsupported processor.
    """
    column, audit = _ARCHITECTURES[machine or platform.machine()]
    steps = [
        _Step(_LOAD, _ARCHITECTURE),
        _Step(_JUMP_EQUAL, audit, 1, 0),
        _refuse(errno.EPERM),
        _Step(_LOAD, _NUMBER),
    ]
    if column == 0:
        steps += [_Step(_JUMP_GREATER_EQUAL, _X32, 0, 1), _refuse(errno.EPERM)]
    names = (*_ALWAYS, *_NO_NAMESPACES) if without_namespaces else _ALWAYS
    for name in names:
        number = _CALLS[name][column]
        if number is not None:
            code = errno.ENOSYS if name in _WITHOUT else errno.EPERM
            steps += [_Step(_JUMP_EQUAL, number, 0, 1), _refuse(code)]
    for name, body in _conditional(without_namespaces):
        number = _CALLS[name][column]
        if number is not None:
            steps += [_Step(_JUMP_EQUAL, number, 0, len(body)), *body]
    steps.append(_Step(_RETURN, _ALLOW))
    return b"".join(step.packed() for step in steps)


def _only_itself(argument: int) -> list[_Step]:
    """Allow a call if it names no process but its caller."""
    return [_Step(_LOAD, argument), _Step(_JUMP_EQUAL, 0, 1, 0), _refuse(errno.EPERM), _Step(_RETURN, _ALLOW)]


def _not_the_first(argument: int) -> list[_Step]:
    """Allow a call unless it names process 1, the supervisor, which a command could otherwise starve."""
    return [_Step(_LOAD, argument), _Step(_JUMP_EQUAL, 1, 0, 1), _refuse(errno.EPERM), _Step(_RETURN, _ALLOW)]


def _refuse(code: int) -> _Step:
    return _Step(_RETURN, _ERRNO | code)


def _conditional(without_namespaces: bool) -> Iterable[tuple[str, list[_Step]]]:
    """Yield the calls that are refused for some arguments only; each body ends in a return."""
    families = () if without_namespaces else _FAMILIES
    socket = [_Step(_LOAD, _ARGUMENT_0)]
    for index, family in enumerate(families):
        socket.append(_Step(_JUMP_EQUAL, family, len(families) - index, 0))
    yield "socket", [*socket, _refuse(errno.EPERM), _Step(_RETURN, _ALLOW)]
    # A datagram socketpair can be connected again, to any path. Only streams stay pairs.
    yield (
        "socketpair",
        [
            _Step(_LOAD, _ARGUMENT_1),
            _Step(_AND, _SOCKET_KIND_MASK),
            _Step(_JUMP_EQUAL, _DATAGRAM, 0, 1),
            _refuse(errno.EPERM),
            _Step(_RETURN, _ALLOW),
        ],
    )
    for name in ("clone", "unshare"):
        yield (
            name,
            [
                _Step(_LOAD, _ARGUMENT_0),
                _Step(_JUMP_SET, _NEW_NAMESPACES, 0, 1),
                _refuse(errno.EPERM),
                _Step(_RETURN, _ALLOW),
            ],
        )
    for name, largest in () if without_namespaces else _LARGEST.items():
        yield (
            name,
            [
                _Step(_LOAD, _ARGUMENT_1_HIGH),
                _Step(_JUMP_EQUAL, 0, 1, 0),
                _refuse(errno.EINVAL),
                _Step(_LOAD, _ARGUMENT_1),
                _Step(_JUMP_GREATER_EQUAL, largest + 1, 0, 1),
                _refuse(errno.EINVAL),
                _Step(_RETURN, _ALLOW),
            ],
        )
    for name in _OF_ITSELF:
        yield name, _only_itself(_ARGUMENT_0) if without_namespaces else _not_the_first(_ARGUMENT_0)
    for name in () if without_namespaces else _PRIORITIES:
        yield name, _not_the_first(_ARGUMENT_1)
    # Its flags are in memory, which a filter cannot read. C libraries then use clone.
    yield "clone3", [_refuse(errno.ENOSYS)]
