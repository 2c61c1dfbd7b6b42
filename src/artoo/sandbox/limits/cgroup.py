"""Create a control group (cgroup v2) for one sandbox, with kernel limits on memory and tasks.

A small shell writes its pid into the group and then executes bubblewrap. All processes that bubblewrap starts are
in the group from their first instruction and cannot leave it, because nothing inside can write to any group.

The kernel's limits are higher than those that the monitor enforces, because the kernel does not know which
processes belong to a command. At its limits it would kill processes of any command, and refuse new processes to all
commands. These limits stop processes that are faster than the monitor or hide from it. If no group can be made,
only the monitor enforces the limits.

The kernel has three rules. Controllers are delegated to children by `cgroup.subtree_control`; a group other than
the root that delegates controllers holds no processes; moving a process requires the right to write `cgroup.procs`
of the target and of the common ancestor. systemd allows other programs to make groups only below a unit with
`Delegate=`. (Documentation/admin-guide/cgroup-v2.rst; systemd's CGROUP_DELEGATION.md)

Therefore groups are made in this process's own group, if only this process and its children are in it. For that
purpose these processes move one level down, and the group delegates its controllers. If this process starts another
artoo, that one finds itself in the lower group, and makes its groups next to it.
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
from artoo.sandbox.limits.usage import members_below
from artoo.sandbox.reading.mount_table import in_memory

_NAME = "artoo-sandbox-"
_JOIN = 'echo 0 > "$0"; exec "$@"'
_MORE_MEMORY, _MORE_TASKS = 256 << 20, 64
_END_ROUNDS, _END_PAUSE = 200, 0.01
CONTROLLERS = frozenset(("memory", "pids"))
_UNITS = (".slice", ".scope", ".service")
_MARKS = ("user.delegate", "trusted.delegate")
_OWN = "artoo-itself"
_ROUNDS = 5
_REMEDY = "start it as: systemd-run --user --scope -p Delegate=yes -- artoo … (in a unit file: Delegate=yes)"


@dataclass(frozen=True, slots=True)
class Group:
    """The group of one sandbox."""

    path: Path

    def joining(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return the arguments of a command that enters the group and then executes `argv` in the same process."""
        return ("/bin/sh", "-c", _JOIN, str(self.path / "cgroup.procs"), *argv)

    async def close(self) -> None:
        """Kill every process in the group, including one that is just being forked, and remove the group.
        Idempotent."""
        with suppress(OSError):
            # One write kills all processes in the group at once. A process that forks meanwhile cannot escape.
            (self.path / "cgroup.kill").write_text("1")
        for _ in range(_END_ROUNDS):
            if _removed(self.path):
                return
            await asyncio.sleep(_END_PAUSE)


async def open_group(limits: SandboxLimits, directories: tuple[Path, ...]) -> Group | None:
    """Make a group for the sandbox whose files are in `directories`. Returns None if no group can be made."""
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
    """Return the place where groups can be made. It is determined once per process. Blocking."""
    if not _parent:
        found = find_parent()
        if found.path is not None:
            _remove_leftovers(found.path)
        _parent.append(found)
    return _parent[0]


def _limit(path: Path, limits: SandboxLimits, files: int) -> None:
    """Set the limits of a group. `files`: number of bytes that are allowed for files in memory, in addition to the
    memory limit, because such files count as disk. Raises OSError."""
    if (path / "memory.swap.max").exists():  # a kernel without swap does not have this file
        (path / "memory.swap.max").write_text("0")
    (path / "memory.max").write_text(str(limits.memory_bytes + files + _MORE_MEMORY))
    (path / "pids.max").write_text(str(limits.processes + _MORE_TASKS))


def _remove_leftovers(parent: Path) -> None:
    """Remove the groups that an artoo process left when it was killed. The processes in the groups died with it."""
    for path in parent.glob(f"{_NAME}*"):
        if not Path("/proc", path.name.removeprefix(_NAME).partition("-")[0]).exists():
            _removed(path)


def _removed(path: Path) -> bool:
    """Remove a group. Returns False while the group contains a process."""
    try:
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


# --- The place ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupParent:
    """The group in which sandbox groups are made. If there is none, `path` is None, with reason and remedy."""

    path: Path | None
    why: str = ""
    remedy: str = ""


def find_parent(
    top: Path = Path("/sys/fs/cgroup"),
    process: Path = Path("/proc/self"),
    systemd: Path = Path("/run/systemd/system"),
) -> GroupParent:
    """Find the parent group. Moves this process and its children one group down if that is required. Blocking."""
    own = _own_group(top, process)
    if own is None or not _words(own / "cgroup.controllers") >= CONTROLLERS:
        return GroupParent(None, "cgroup v2 has no memory and pids controllers here")
    is_systemds = systemd.is_dir() or own.name.endswith(_UNITS) or own.parent.name.endswith(_UNITS)
    group = own.parent if own.name == _OWN else own
    may_use = _may_write(group) and (_is_delegated(group) or not is_systemds)
    if may_use and (_hands_on(group) if group != own else _hand_on(group, is_root=own == top)):
        return GroupParent(group)
    return GroupParent(None, "the group that artoo runs in is not its own", _REMEDY)


def _own_group(top: Path, process: Path) -> Path | None:
    """Return the group of this process. Return None if the hierarchy is not mounted or if the mount does not show
    the group."""
    try:
        lines = (process / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    path = next((line[3:].lstrip("/") for line in lines if line.startswith("0::")), "..")
    return top / path if ".." not in path.split("/") and (top / path / "cgroup.procs").exists() else None


def _is_delegated(group: Path) -> bool:
    """True if systemd has delegated the group to artoo. It has not if another systemd manager (a user's systemd)
    runs in it."""
    for name in _MARKS:
        with suppress(OSError):
            if os.getxattr(group, name) == b"1":
                return not (group / "init.scope").exists()
    return False


def _words(path: Path) -> frozenset[str]:
    try:
        return frozenset(path.read_text(encoding="utf-8").split())
    except OSError:
        return frozenset()


def _hands_on(group: Path) -> bool:
    return _words(group / "cgroup.subtree_control") >= CONTROLLERS


def _may_write(group: Path) -> bool:
    return os.access(group, os.W_OK | os.X_OK) and os.access(group / "cgroup.procs", os.W_OK)


def _hand_on(group: Path, *, is_root: bool) -> bool:
    """Delegate the controllers of a group and move its processes one level down. Returns False if that fails.

    The group must hold only this process and its children. The root of the whole hierarchy (which has no
    `cgroup.type`) is never changed, because it belongs to the machine.
    """
    if (is_root and not (group / "cgroup.type").exists()) or not _is_only_ours(group):
        return False
    try:
        (group / _OWN).mkdir(exist_ok=True)
        for _ in range(_ROUNDS):  # repeated, because a child that was started meanwhile is in the old group
            for pid in _processes(group):
                with suppress(ProcessLookupError):
                    (group / _OWN / "cgroup.procs").write_text(str(pid))
            if not _processes(group):
                break
        (group / "cgroup.subtree_control").write_text("+memory +pids")
    except OSError:  # possible reasons are a threaded group, a policy, or a process that was added meanwhile
        return False
    return True


def _is_only_ours(group: Path) -> bool:
    own = os.getpid()
    return {own, *(one.pid for one in members_below(own))} >= {*_processes(group)}


def _processes(group: Path) -> list[int]:
    return [int(word) for word in (group / "cgroup.procs").read_text(encoding="utf-8").split()]
