"""Looks at what a sandbox has on disk: its directories, and files without a name that its processes hold."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from artoo.ports.workspace import SandboxLimits
from artoo.sandbox.limits.hidden_memory import held_by
from artoo.sandbox.limits.looking import Counters, Excess, Pace, blame, changed, mib
from artoo.sandbox.limits.process_tree import Member, members_below, written_bytes

_LEAST_MOVES = (32 << 20, 1_000)
"""Smaller movements of the free bytes and inodes are no reason to look."""
_GRACE_PART = 32


class DiskWatch:
    """Looks at the directories of the sandbox whose first process is `leader`."""

    def __init__(self, leader: int, limits: SandboxLimits, directories: tuple[Path, ...]) -> None:
        self._leader = leader
        self._limits = _Extent(limits.disk_bytes, limits.paths)
        self._directories = directories
        self._pace = Pace()
        self._most_free = _Extent(0, 0)
        self._used = _Extent(0, 0)
        self._ceiling: _Extent | None = None
        self._written: dict[int, int] = {}

    def begin(self, now: float) -> None:
        """Start over when a command starts in a sandbox in which nothing ran."""
        self._pace.begin(now)
        self._most_free = _Extent(0, 0)
        self._ceiling = None
        self._written = {}

    def is_due(self, now: float, counters: Counters) -> bool:
        """True if it is time to look."""
        free = _Extent(counters.free_bytes, counters.free_paths)
        self._most_free = self._most_free.larger(free)
        margins = zip(self._most_free, free, self._limits, self._used, _LEAST_MOVES, strict=True)
        moved = any(most - now > max(least, (limit - used) // 4) for most, now, limit, used, least in margins)
        return self._pace.is_due(now, moved=moved)

    def look(self, counters: Counters) -> Excess | None:
        """Return the limit that is exceeded now. Blocking."""
        began, before = time.monotonic(), self._used
        members = members_below(self._leader)
        held = held_by(one.pid for one in members)
        named, paths = disk_usage(self._directories, *(self._ceiling or (1 << 62, 1 << 62)))
        self._used = _Extent(named + held.disk_bytes, paths)
        excess = self._exceeded(members)
        self._most_free = _Extent(counters.free_bytes, counters.free_paths)
        self._pace.looked(began, moved=changed(before, self._used), exceeded=excess is not None)
        return excess

    def _exceeded(self, members: list[Member]) -> Excess | None:
        """Compare with the limits, or with a little more than there was before the command.

        A command that tidies up must be able to run in a workspace that is full.
        """
        before, self._written = self._written, {one.pid: written_bytes(one.pid) for one in members}
        most = _Extent(*(used + limit // _GRACE_PART for used, limit in zip(self._used, self._limits, strict=True)))
        ceiling = self._ceiling or most.larger(self._limits)
        exceeded = any(used > allowed for used, allowed in zip(self._used, ceiling, strict=True))
        # After an excess the next look finds out what the command has left, which writes until it is dead.
        self._ceiling = None if exceeded else most.smaller(ceiling).larger(self._limits)
        if not exceeded or not members:
            return None
        note = (
            f"{mib(self._used.size)} and {self._used.paths} paths in the workspace and its /tmp,"
            f" {mib(self._limits.size)} and {self._limits.paths} paths are allowed"
        )
        shares = {pid: size - before.get(pid, 0) for pid, size in self._written.items()}
        if not any(shares.values()):  # reserved and not written: the last that was started
            shares[max(shares)] = 1
        return blame("disk_limit", note, members, shares)


class _Extent(NamedTuple):
    """Bytes and paths."""

    size: int
    paths: int

    def larger(self, other: _Extent) -> _Extent:
        return _Extent(max(self.size, other.size), max(self.paths, other.paths))

    def smaller(self, other: _Extent) -> _Extent:
        return _Extent(min(self.size, other.size), min(self.paths, other.paths))


def disk_usage(directories: Iterable[Path], stop_bytes: int, stop_paths: int) -> tuple[int, int]:
    """Count bytes on disk and paths below directories; stop beyond either bound.

    All names of one whiteout count once: the overlay gives it a further name for each file that is removed, until
    its directory goes, and a command that tidies up would seem to make what it removes.
    """
    total, paths = 0, 0
    whiteouts = set[tuple[int, int]]()
    todo = [os.fsencode(directory) for directory in directories]
    while todo and total <= stop_bytes and paths <= stop_paths:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    paths += 1
                    # A name that vanishes between listing and looking hides nothing of what is next to it.
                    with suppress(FileNotFoundError):
                        found = entry.stat(follow_symlinks=False)
                        total += found.st_blocks * 512
                        if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
                            paths -= (found.st_dev, found.st_ino) in whiteouts
                            whiteouts.add((found.st_dev, found.st_ino))
                        if entry.is_dir(follow_symlinks=False):
                            todo.append(entry.path)
        except OSError:  # removed at this moment, or closed by a command
            continue
    return total, paths
