"""Confine commands with Landlock and the stricter system-call filter, where namespaces are forbidden."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from artoo.sandbox.limits import seccomp

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
_SOURCES = ("/dev/random", "/dev/urandom")


def confinement(hidden: tuple[Path, ...], writable: tuple[Path, ...]) -> dict[str, object]:
    """Return the plan of the supervisor: only `writable` can be changed, and `hidden` cannot be read. Blocking."""
    return {
        "readable": [*readable_around((*hidden, Path("/dev"))), *_SOURCES],
        "writable": list(map(str, writable)),
        "devices": list(_DEVICES),
        "steps": seccomp.filter_program(without_namespaces=True).hex(),
        "calls": seccomp.judged(),
    }


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
