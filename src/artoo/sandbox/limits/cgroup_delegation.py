"""Finds where this process may make control groups (cgroup v2), with the `memory` and `pids` controllers.

The kernel's rules: controllers are handed to children by `cgroup.subtree_control`; a group other than the root that
hands some on holds no processes; moving a process takes the right to write `cgroup.procs` of the target and of the
common ancestor. systemd's rule: another program makes groups only below a unit with `Delegate=`.
(Documentation/admin-guide/cgroup-v2.rst; systemd's CGROUP_DELEGATION.md)

So groups are made next to this process's own group, where the group above is ours and hands both controllers on. Or
in its own group, where that holds only us: then we move ourselves one level down and hand the controllers on.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from artoo.sandbox.limits.usage import members_below

CONTROLLERS = frozenset(("memory", "pids"))
_UNITS = (".slice", ".scope", ".service")
_MARKS = ("user.delegate", "trusted.delegate")
_BOUNDS = ("memory.max", "memory.high", "memory.swap.max", "pids.max", "cpu.max", "cpuset.cpus", "io.max")
_OWN = "artoo-itself"
_ROUNDS = 5
_REMEDY = "start it as: systemd-run --user --scope -p Delegate=yes -- artoo … (in a unit file: Delegate=yes)"


@dataclass(frozen=True, slots=True)
class GroupParent:
    """The group in which new ones are made (None: there is none), why there is none, and what would help."""

    path: Path | None
    why: str = ""
    remedy: str = ""


def find_parent(
    top: Path = Path("/sys/fs/cgroup"),
    process: Path = Path("/proc/self"),
    systemd: Path = Path("/run/systemd/system"),
) -> GroupParent:
    """Look for it; move this process and its children one group down where that makes one. Blocking."""
    own = _own_group(top, process)
    if own is None or not _words(own / "cgroup.controllers") >= CONTROLLERS:
        return GroupParent(None, "cgroup v2 has no memory and pids controllers here")
    is_systemds = systemd.is_dir() or own.name.endswith(_UNITS) or own.parent.name.endswith(_UNITS)
    for group in (own.parent, own) if own != top else (own,):
        if is_systemds and not _is_delegated(group):
            continue
        if group != own and _hands_on(group) and _may_write(group) and _is_unlimited(own):
            return GroupParent(group)
        if group == own and _may_write(group) and _hand_on(group, is_root=own == top):
            return GroupParent(group)
    return GroupParent(None, "the group that artoo runs in is not its own", _REMEDY)


def _own_group(top: Path, process: Path) -> Path | None:
    """Return this process's group; None if the hierarchy is not mounted, or shows another part of the tree."""
    try:
        lines = (process / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    path = next((line[3:].lstrip("/") for line in lines if line.startswith("0::")), "..")
    return top / path if ".." not in path.split("/") and (top / path / "cgroup.procs").exists() else None


def _is_delegated(group: Path) -> bool:
    """True if systemd has handed the group over, and not to a manager of its own (a user's systemd)."""
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


def _is_unlimited(group: Path) -> bool:
    """True if a sandbox next to the group leaves no limit that was set for artoo."""
    return all(_words(group / name) <= {"max", "100000"} for name in _BOUNDS)


def _hand_on(group: Path, *, is_root: bool) -> bool:
    """Hand the controllers of a group that is ours alone on, with this process one below; return if it worked.

    The root of the whole hierarchy has no type; what it hands on is the machine's affair.
    """
    if (is_root and not (group / "cgroup.type").exists()) or not _is_only_ours(group):
        return False
    try:
        (group / _OWN).mkdir(exist_ok=True)
        for _ in range(_ROUNDS):  # a child that was started meanwhile is in the old group
            for pid in _processes(group):
                with suppress(ProcessLookupError):
                    (group / _OWN / "cgroup.procs").write_text(str(pid))
            if not _processes(group):
                break
        (group / "cgroup.subtree_control").write_text("+memory +pids")
    except OSError:  # a threaded group, a policy, or a process that came meanwhile
        return False
    return True


def _is_only_ours(group: Path) -> bool:
    own = os.getpid()
    return {own, *(one.pid for one in members_below(own))} >= {*_processes(group)}


def _processes(group: Path) -> list[int]:
    return [int(word) for word in (group / "cgroup.procs").read_text(encoding="utf-8").split()]
