"""Lays a view's file system before bubblewrap starts, so that bubblewrap finds it there and has only to isolate.

bubblewrap reads the whole table of mounts for each place that it binds, and a view has dozens of closed places.
Here each is a few system calls (`laying`), made by the process that becomes bubblewrap.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence

from artoo.world.laying import Numbers, Plan, keep, keep_own, laid
from artoo.world.overlay import View
from artoo.world.steps import EARLIER, RESULT, Steps, program

_WRITE, _CLOSE, _EXECVE, _PRCTL, _MOUNT, _OPEN, _UNSHARE, _EXECVE_AT = 1, 3, 59, 157, 165, 257, 272, 322
_HERE, _EMPTY_PATH = -100, 0x1000
_NEW_MOUNTS, _NEW_USER = 0x20000, 0x10000000
_RECURSIVE, _PRIVATE = 0x4000, 0x40000
_DIES_WITH_PARENT, _KILL = 1, 9
_MULTIPLE = 32
"""Of so many steps is what comes before the files, so that the steps for these are the same for many commands."""


def laid_ahead(
    view: View,
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    shared_memory: int,
    user_namespace: bool,
    last_descriptor: int,
) -> bytes:
    """A program that lays the view's files and becomes `argv`. It uses descriptors after `last_descriptor`."""
    numbers = Numbers.after(last_descriptor, view)
    steps = Steps()
    begin(steps, user_namespace=user_namespace)
    keep_own(steps, view, numbers)
    keep(steps, argv[0], numbers.program)
    steps.fill(_MULTIPLE)
    before = steps.part()
    files = laid(before.end, 1, numbers, Plan.of(view, shared_memory, proc_follows=True))
    steps = Steps(files.end, 2)
    _become(steps, numbers.program, argv, env)
    return program(before, files, steps.part())


def begin(steps: Steps, *, user_namespace: bool) -> None:
    """A mount namespace of our own, from which nothing spreads; no end after that of who started it."""
    steps.call(_PRCTL, _DIES_WITH_PARENT, _KILL, what="die with the parent")
    unshare(steps, _NEW_MOUNTS, user_namespace=user_namespace)
    steps.call(_MOUNT, b"none", b"/", b"", _PRIVATE | _RECURSIVE, b"", what="keep mounts to ourselves")


def unshare(steps: Steps, namespaces: int, *, user_namespace: bool) -> None:
    """New namespaces; if one of users is among them, the user is in it who they are."""
    steps.call(_UNSHARE, namespaces | (_NEW_USER if user_namespace else 0), what="unshare")
    if user_namespace:
        user, group = os.geteuid(), os.getegid()
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            path = f"/proc/self/{name}"
            steps.call(_OPEN, _HERE, path.encode(), os.O_WRONLY | os.O_CLOEXEC, what=f"open {path}")
            steps.call(_WRITE, RESULT, text.encode(), len(text), what=f"write {path}")
            steps.call(_CLOSE, EARLIER, what=f"close {path}")


def _become(steps: Steps, descriptor: int, argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Starts what was opened, wherever that lies by now; a script can only be started by its path."""
    words = tuple(map(os.fsencode, argv))
    variables = tuple(os.fsencode(f"{name}={value}") for name, value in env.items())
    what = f"start {argv[0]}"
    steps.call(_EXECVE_AT, descriptor, b"", words, variables, _EMPTY_PATH, what=what, allowed=(errno.ENOENT,))
    steps.call(_EXECVE, words[0], words, variables, what=what)
