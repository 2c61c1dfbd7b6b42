"""Confine commands with Landlock and the stricter system-call filter, where namespaces are forbidden."""

from __future__ import annotations

import errno
import platform
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

from artoo.sandbox.limits import seccomp
from artoo.sandbox.supervisor.confinement import BROKERED

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
_SOURCES = ("/dev/random", "/dev/urandom")
_UNSUPPORTED = ("setxattr", "lsetxattr", "fsetxattr")
"""Calls that are answered as by a file system without extended attributes: `cp -a` then goes without them."""

_FCNTL, _IOCTL = {"x86_64": 72, "aarch64": 25}, {"x86_64": 16, "aarch64": 29}
_NAME_A_PROCESS = ((_FCNTL, (8, 10, 15)), (_IOCTL, (0x8901, 0x8902)))
"""F_SETOWN, F_SETSIG, F_SETOWN_EX, FIOSETOWN, SIOCSPGRP: a file sends any signal to any process of the user."""

_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _ARCHITECTURE, _SECOND_ARGUMENT = 0, 4, 24
_ASK_BROKER, _ERRNO = 0x7FC00000, 0x00050000


def confinement(hidden: tuple[Path, ...], writable: tuple[Path, ...]) -> dict[str, object]:
    """Return the plan of the supervisor: only `writable` can be changed, and `hidden` cannot be read. Blocking."""
    calls = seccomp.numbers(BROKERED)
    return {
        "readable": [*readable_around((*hidden, Path("/dev"))), *_SOURCES],
        "writable": list(map(str, writable)),
        "devices": list(_DEVICES),
        "steps": (_first_steps(calls) + seccomp.filter_program(without_namespaces=True)).hex(),
        "calls": calls,
    }


def _first_steps(brokered: dict[int, str]) -> bytes:
    """Return instructions that pass calls to the broker, before those that would refuse them."""
    answers = dict.fromkeys(brokered, _ASK_BROKER)
    answers |= dict.fromkeys(seccomp.numbers(_UNSUPPORTED), _ERRNO | errno.EOPNOTSUPP)
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, seccomp.architecture()),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_LOAD, 0, 0, _NUMBER),
    ]
    for number, answer in answers.items():
        steps += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer)]
    for call, requests in _NAME_A_PROCESS:
        number = call[platform.machine()]
        steps += [(_JUMP_EQUAL, 0, 2 * len(requests) + 2, number), (_LOAD, 0, 0, _SECOND_ARGUMENT)]
        for request in requests:
            steps += [(_JUMP_EQUAL, 0, 1, request), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
        steps.append((_LOAD, 0, 0, _NUMBER))
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def readable_around(hidden: tuple[Path, ...]) -> Iterator[str]:
    """Return the largest trees that contain nothing hidden, because Landlock can only allow.

    A directory that contains something hidden is known by its identity: no other name allows it either.
    """
    opened = {Path("/")} | {ancestor for path in hidden for ancestor in path.parents}
    around = {None, *map(_identity, opened)}
    for directory in sorted(opened):
        try:
            children = sorted(directory.iterdir())
        except OSError:  # not readable for the user, so not for the command
            continue
        for child in children:
            if child not in opened and child not in hidden and _identity(child) not in around:
                yield str(child)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from all others; None for a link, and for what was removed meanwhile."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return None if stat.S_ISLNK(status.st_mode) else (status.st_dev, status.st_ino)
