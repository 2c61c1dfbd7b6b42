"""Finds where this process may make control groups (cgroup v2), with the `memory` and `pids` controllers.

The kernel's rules: controllers are handed to children by `cgroup.subtree_control`; a group other than the root that
hands some on holds no processes; moving a process takes the right to write `cgroup.procs` of the target and of the
common ancestor. systemd's rules: one writer a group; another program makes groups only below a unit with
`Delegate=`. (Documentation/admin-guide/cgroup-v2.rst; systemd's CGROUP_DELEGATION.md)

So the parent of new groups is the nearest group above this process that hands both controllers on, that we may
write to, and that no other manager owns, as long as no limit of a group in between would be left. Where a whole
group is ours and holds only us, we move ourselves one level down and hand the controllers on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from artoo.sandbox.limits.process_tree import members_below
from artoo.sandbox.reading.mount_table import unescaped

CONTROLLERS = frozenset(("memory", "pids"))
_UNITS = (".slice", ".scope", ".service")
_MARKS = ("user.delegate", "trusted.delegate")
_BOUNDS = ("memory.max", "memory.high", "memory.swap.max", "pids.max", "cpu.max", "cpuset.cpus", "io.max")
_OWN = "artoo-itself"
_ROUNDS = 5
_DELEGATED = "start it as: systemd-run --user --scope -p Delegate=yes -- artoo … (in a unit file: Delegate=yes)"


@dataclass(frozen=True, slots=True)
class GroupParent:
    """The group in which new ones are made (None: there is none), why there is none, and what would help."""

    path: Path | None
    why: str = ""
    remedy: str = ""


def find_parent(proc: Path = Path("/proc"), systemd: Path = Path("/run/systemd/system")) -> GroupParent:
    """Look for it; move this process and its children one group down where that makes one. Blocking."""
    found = _own_group(proc / "self")
    if isinstance(found, str):
        return GroupParent(None, found)
    top, own = found
    above = list(_upwards(own, top))
    if not any(_listed(one / "cgroup.controllers") >= CONTROLLERS for one in above):
        return GroupParent(None, "cgroup v2 has no memory and pids controllers here")
    if systemd.is_dir() or any(part.endswith(_UNITS) for part in own.relative_to(top).parts):
        ours = _delegated(above)
        if not ours:
            return GroupParent(None, "the group that artoo runs in belongs to systemd", _DELEGATED)
        above = ours
    for index, group in enumerate(above):
        if _listed(group / "cgroup.subtree_control") >= CONTROLLERS and _may_write(group):
            return GroupParent(group)
        if index == 0 and _may_write(group) and _handed_on(group, top):
            return GroupParent(group)
        if not _unlimited(group):
            return GroupParent(
                None, f"{group.name or 'the group'} has limits of its own, which a sandbox must not leave"
            )
    return GroupParent(None, "no group above artoo may be written to and hands memory and pids on", _DELEGATED)


def _own_group(process: Path) -> tuple[Path, Path] | str:
    """Return where the hierarchy is mounted, and this process's group in it; else why that cannot be told."""
    try:
        lines = (process / "cgroup").read_text().splitlines()
        mounts = (process / "mountinfo").read_bytes().splitlines()
    except OSError:
        return "the kernel has no control groups"
    path = next((line[3:] for line in lines if line.startswith("0::")), None)
    if path is None:
        return "cgroup v2 is not used on this machine"
    for line in mounts:
        before, _, after = line.partition(b" - ")
        if after.split(b" ", 1)[0] != b"cgroup2":
            continue
        root, point = (Path(os.fsdecode(unescaped(one))) for one in before.split()[3:5])
        if Path(path).is_relative_to(root) and ".." not in path.split("/"):
            own = point / Path(path).relative_to(root)
            if (own / "cgroup.procs").exists():
                return point, own
    return "the group that artoo runs in is not mounted here"


def _upwards(own: Path, top: Path) -> Iterator[Path]:
    yield own
    while own != top:
        own = own.parent
        yield own


def _delegated(above: list[Path]) -> list[Path]:
    """Return the groups up to the nearest one that systemd delegated; none if that has a manager of its own."""
    for index, group in enumerate(above):
        if _is_marked(group):
            return [] if (group / "init.scope").exists() else above[: index + 1]
    return []


def _is_marked(group: Path) -> bool:
    for name in _MARKS:
        with suppress(OSError):
            if os.getxattr(group, name) == b"1":
                return True
    return False


def _listed(path: Path) -> frozenset[str]:
    try:
        return frozenset(path.read_text(encoding="utf-8").split())
    except OSError:
        return frozenset()


def _may_write(group: Path) -> bool:
    return os.access(group, os.W_OK | os.X_OK) and os.access(group / "cgroup.procs", os.W_OK)


def _unlimited(group: Path) -> bool:
    return all(_first_word(group / name) in ("", "max") for name in _BOUNDS)


def _first_word(path: Path) -> str:
    try:
        return (path.read_text(encoding="utf-8").split() or [""])[0]
    except OSError:
        return ""


def _handed_on(group: Path, top: Path) -> bool:
    """Hand the controllers of a group that is ours alone on, with this process one below it; return if it worked.

    The root of the whole hierarchy has no type; what it hands on is the machine's affair.
    """
    if group == top and not (group / "cgroup.type").exists():
        return False
    if not _listed(group / "cgroup.controllers") >= CONTROLLERS:
        return False
    if not os.access(group / "cgroup.subtree_control", os.W_OK) or not _only_ours(group):
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


def _processes(group: Path) -> list[int]:
    return [int(word) for word in (group / "cgroup.procs").read_text().split()]


def _only_ours(group: Path) -> bool:
    own = os.getpid()
    return {own, *(one.pid for one in members_below(own))} >= {*_processes(group)}
