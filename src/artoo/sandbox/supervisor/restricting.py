"""System calls that restrict a process for ever (Landlock, capabilities, seccomp).

The module uses only the standard library.
"""

from __future__ import annotations

import ctypes
import os
import struct

_LIBC = ctypes.CDLL(None, use_errno=True)
_NO_NEW_PRIVILEGES, _DROP_BOUND = 38, 24

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHARACTER_DEVICE, _MAKE_BLOCK_DEVICE = 1 << 6, 1 << 11
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_ALL_TCP, _ABSTRACT_SOCKETS = 0x3, 0x1
_RIGHTS_ON_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL

_SECCOMP, _SET_FILTER = {"x86_64": 317, "aarch64": 277}, 1
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5


def check(result: int, what: str) -> int:
    """Return the result of a C library call. Raises OSError if it is negative."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def restrict_writes(directories: list[str]) -> None:
    """Allow this process and all commands to open files for writing only below these directories.

    A read-only mount does not prevent writing to a named pipe in it, from which a service outside may read.
    Landlock does prevent this. It must be set up inside the sandbox, after the last mount. Moving and linking
    between directories is allowed if both are below these directories. A directory that does not exist is ignored.
    """
    _restrict(struct.pack("Q", _WRITE | _REFER), [(directories, _WRITE | _REFER)])


def restrict_files(readable: list[str], writable: list[str], devices: list[str]) -> None:
    """Allow reading and executing below `readable`, listing directories everywhere, and changing files below
    `writable`.

    All other access is denied to this process and its descendants, including TCP and abstract sockets if the kernel
    supports it.
    """
    # Each version of Landlock adds rights. A right that the kernel does not know makes the call fail, so only the
    # known rights are requested.
    version = max(0, _LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1))
    if version == 0:
        raise OSError("the kernel has no Landlock, or it is switched off")
    rights = (1 << (13 if version < 2 else 14 if version < 3 else 15 if version < 5 else 16)) - 1
    size = 8 if version < 4 else 16 if version < 6 else 24
    groups = [
        (readable, _EXECUTE | _READ | _LIST),
        (["/"], _LIST),
        (writable, rights & ~(_MAKE_CHARACTER_DEVICE | _MAKE_BLOCK_DEVICE)),
        (devices, rights & (_READ | _WRITE | _IOCTL)),
    ]
    _restrict(struct.pack("QQQ", rights, _ALL_TCP, _ABSTRACT_SOCKETS)[:size], groups)


def _restrict(attributes: bytes, groups: list[tuple[list[str], int]]) -> None:
    """Restrict this process by a set of rules. Each rule has paths and the access that is allowed below them."""
    ruleset = check(_LIBC.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0), "Landlock")
    for paths, access in groups:
        for path in paths:
            _allow(ruleset, path, access)
    forbid_new_privileges()
    check(_LIBC.syscall(_RESTRICT_SELF, ruleset, 0), "Landlock")
    os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # the path was removed meanwhile, or is not visible to this user, so no rule is needed
        return
    try:
        if not os.path.isdir(f"/proc/self/fd/{descriptor}"):
            access &= _RIGHTS_ON_FILES
        rule = struct.pack("=Qi", access, descriptor)
        check(_LIBC.syscall(_ADD_RULE, ruleset, 1, rule, 0), f"Landlock's rule for {path}")
    finally:
        os.close(descriptor)


def forbid_new_privileges() -> None:
    """Keep programs from giving this process privileges. Landlock and filters require this."""
    check(_LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")


def drop_capabilities(kept: int) -> None:
    """Drop all capabilities that are not in the mask `kept`. No later exec can restore them."""
    forbid_new_privileges()
    for capability in range(64):
        if not kept >> capability & 1 and _LIBC.prctl(_DROP_BOUND, capability, 0, 0, 0) < 0:
            break  # the kernel has no higher capability
    header, held = struct.pack("Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    check(_LIBC.capget(header, held), "capget")
    permitted = struct.unpack("6I", held.raw)[1] & kept
    check(_LIBC.capset(header, struct.pack("6I", permitted, permitted, 0, 0, 0, 0)), "capset")


def install_filter(program: bytes) -> int:
    """Install a seccomp filter. Return the descriptor that receives the calls which the filter passes on."""

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    steps = ctypes.create_string_buffer(program, len(program))
    loaded = Filter(len(program) // 8, ctypes.addressof(steps))
    forbid_new_privileges()
    number = _SECCOMP[os.uname().machine]
    # Without "wait killable" (which Linux has since 5.19), a signal during the call makes the command repeat the
    # call.
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        listener = _LIBC.syscall(number, _SET_FILTER, flags, ctypes.byref(loaded))
        if listener >= 0:
            return listener
    return check(listener, "seccomp")
