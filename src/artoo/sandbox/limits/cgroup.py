"""A control group (cgroup v2) for one sandbox, in which the kernel bounds memory and tasks.

A small shell writes itself into the group and becomes bubblewrap. All that this starts is in the group from its
first instruction on and cannot leave, because nothing inside can write to any group.

The kernel's bounds lie above the limits that the monitor enforces, because the kernel knows no commands: it would
kill processes of any command, and refuse new processes to all. They stop what is faster than the monitor, or hides
from it. Where there is no place for a group, the monitor is alone.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from artoo.ports.workspace import SandboxLimits
from artoo.sandbox.limits.cgroup_delegation import GroupParent, find_parent
from artoo.sandbox.reading.mount_table import in_memory

_NAME = "artoo-sandbox-"
_JOIN = 'echo 0 > "$0"; exec "$@"'
_MORE_MEMORY, _MORE_TASKS = 256 << 20, 64
_END_ROUNDS, _END_PAUSE = 200, 0.01


@dataclass(frozen=True, slots=True)
class Group:
    """The group of one sandbox."""

    path: Path

    def joining(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return what to start so that `argv` runs in the group, in the same process."""
        return ("/bin/sh", "-c", _JOIN, str(self.path / "cgroup.procs"), *argv)

    async def close(self) -> None:
        """Kill every process in it, also one that is being made just now, and remove it. Idempotent."""
        with suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")
        for _ in range(_END_ROUNDS):
            if _removed(self.path):
                return
            await asyncio.sleep(_END_PAUSE)


async def open_group(limits: SandboxLimits, directories: tuple[Path, ...]) -> Group | None:
    """Make a group for one sandbox, which has its files in `directories`; None where none can be made."""
    found = _parent[0] if _parent else await asyncio.to_thread(group_parent)
    if found.path is None:
        return None
    group = Group(found.path / f"{_NAME}{os.getpid()}-{next(_numbers)}")
    try:
        group.path.mkdir(mode=0o755)
        _limit(group.path, limits, limits.disk_bytes if in_memory(directories) else 0)
    except OSError:
        _removed(group.path)
        return None
    return group


_parent: list[GroupParent] = []
_numbers = count(1)


def group_parent() -> GroupParent:
    """Return where groups can be made; looked for once in this process. Blocking."""
    if not _parent:
        found = find_parent()
        if found.path is not None:
            _remove_leftovers(found.path)
        _parent.append(found)
    return _parent[0]


def _limit(path: Path, limits: SandboxLimits, files: int) -> None:
    """Set the bounds. `files`: bytes that files in memory may have, which count as disk. Raises OSError."""
    if (path / "memory.swap.max").exists():  # a kernel without swap has no bound for it
        (path / "memory.swap.max").write_text("0")
    (path / "memory.max").write_text(str(limits.memory_bytes + files + _MORE_MEMORY))
    (path / "pids.max").write_text(str(limits.processes + _MORE_TASKS))


def _remove_leftovers(parent: Path) -> None:
    """Remove the groups of an artoo that was killed. Their processes died with it."""
    for path in parent.glob(f"{_NAME}*"):
        if not Path("/proc", path.name.removeprefix(_NAME).partition("-")[0]).exists():
            _removed(path)


def _removed(path: Path) -> bool:
    """Remove a group; return False while a process in it lives."""
    try:
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
