"""Looks at a running command from outside: how many processes, how much memory, how much disk.

Memory is what the processes have to themselves, what they share, what lies in memory without a name, and the
buffers of their sockets and pipes; disk is what lies in the command's directories and what was removed there while
open. Where something is held that cannot be measured, what the machine has lost since the command started stands
for it.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from artoo.ports.sandbox import Limits, RunStatus
from artoo.world.cgroup import Group
from artoo.world.held import Held, held_by
from artoo.world.mounts import in_memory
from artoo.world.process_tree import descendants, tree_usage

_FIRST_LOOK_SECONDS = 0.1
_PAUSE_SECONDS = 0.1
_FIRST_VICTIM = b"1000"


@dataclass(frozen=True, slots=True)
class Room:
    """What the machine has, in bytes: memory that is shared or lies in a file system, memory that the kernel needs
    for tables and cannot take back (descriptors, locks, pieces of address spaces), free disk."""

    shared_memory: int
    kernel_memory: int
    free_disk: int


def room(directories: Iterable[Path]) -> Room:
    """What there is now. Blocking."""
    shared, kernel = machine_memory(b"Shmem", b"SUnreclaim")
    systems = {os.stat(place).st_dev: os.statvfs(place) for place in directories if os.path.isdir(place)}
    return Room(shared, kernel, sum(one.f_bfree * one.f_frsize for one in systems.values()))


def machine_memory(*names: bytes) -> tuple[int, ...]:
    """Fields of /proc/meminfo, in bytes; 0 for one that the kernel does not know."""
    with open("/proc/meminfo", "rb", buffering=0) as file:
        text = b"\n" + file.read()
    return tuple(_field(text, b"\n" + name + b":") for name in names)


def _field(text: bytes, name: bytes) -> int:
    at = text.find(name)
    return int(text[at + len(name) :].split(None, 1)[0]) * 1024 if at >= 0 else 0


def disk_usage(
    directories: Iterable[Path], stop_bytes: int, stop_paths: int, *, removals: bool = True
) -> tuple[int, int]:
    """Bytes on disk and number of paths below `directories`; stops counting beyond either bound.

    Without `removals` all names of one whiteout count once. The overlay gives it a further name for each file that
    is removed, until its directory goes: a command that tidies up would seem to make what it removes.
    """
    total, paths = 0, 0
    whiteouts = set[tuple[int, int]]()
    todo = [os.fsencode(directory) for directory in directories]
    while todo and total <= stop_bytes and paths <= stop_paths:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    paths += 1
                    # What was removed just now hides nothing of what lies beside it.
                    with suppress(FileNotFoundError):
                        found = entry.stat(follow_symlinks=False)
                        total += found.st_blocks * 512
                        if not removals and stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
                            paths -= (found.st_dev, found.st_ino) in whiteouts
                            whiteouts.add((found.st_dev, found.st_ino))
                        if entry.is_dir(follow_symlinks=False):
                            todo.append(entry.path)
        except OSError:  # removed at this moment, or closed by the command; the scan will see it
            continue
    return total, paths


async def watch_tree(
    leader: Callable[[], int | None],
    directories: tuple[Path, ...],
    limits: Limits,
    before: Room,
    group: Group | None,
    stop: Callable[[RunStatus], None],
) -> None:
    """Calls `stop` when the tree below `leader` uses more than `limits`. Runs until cancelled.

    `before` is what the machine had before it started. With a `group` the kernel has counted memory and tasks;
    without one they are summed up here.
    """
    await asyncio.sleep(_FIRST_LOOK_SECONDS)
    offered = False
    while True:
        pid = leader()
        # What others give back meanwhile must not hide what the command takes: the least that was seen counts.
        least = min(before.kernel_memory, room(()).kernel_memory)
        before = replace(before, kernel_memory=least)
        found = await asyncio.to_thread(excess, pid, directories, limits, before, group)
        if found is not None:
            return stop(found)
        if pid is not None and not offered:
            await asyncio.to_thread(_offer, pid)
            offered = True
        await asyncio.sleep(_PAUSE_SECONDS)


def excess(
    leader: int | None, directories: tuple[Path, ...], limits: Limits, before: Room, group: Group | None = None
) -> RunStatus | None:
    """The first limit that is exceeded at this moment."""
    named, paths = disk_usage(directories, limits.disk_bytes, limits.paths, removals=False)
    if named > limits.disk_bytes or paths > limits.paths:
        return "disk_limit"
    if leader is None:
        return None
    if group is None:
        if room(()).kernel_memory - before.kernel_memory > limits.memory_bytes:
            return "memory_limit"  # asked first: it takes no time, and what fills these tables makes the rest slow
        usage = tree_usage(leader)
        if usage.tasks > limits.processes:
            return "process_limit"
        held = held_by(usage.members)
        if usage.memory_bytes + held.memory_bytes > limits.memory_bytes:
            return "memory_limit"
    else:
        named_in_memory, _ = disk_usage(in_memory(directories), limits.disk_bytes, limits.paths)
        if group.memory_bytes() - named_in_memory > limits.memory_bytes:
            return "memory_limit"
        if (hit := group.hit()) is not None:
            return hit
        held = held_by(group.members())
    if named + held.disk_bytes > limits.disk_bytes:
        return "disk_limit"
    return _unexplained(named, held, limits, before, room(directories)) if held.trace else None


def _unexplained(named: int, held: Held, limits: Limits, before: Room, now: Room) -> RunStatus | None:
    """What went since the command started and is nowhere to be seen, while it holds something that hides."""
    seen = named + held.disk_bytes + held.memory_bytes
    if now.shared_memory - before.shared_memory - seen > limits.memory_bytes:
        return "memory_limit"
    return "disk_limit" if before.free_disk - now.free_disk - seen > limits.disk_bytes else None


def _offer(leader: int) -> None:
    """Names the command's processes, and all that they will make, as the first to go when memory runs out."""
    for pid in (leader, *descendants(leader)):
        with suppress(OSError):
            Path(f"/proc/{pid}/oom_score_adj").write_bytes(_FIRST_VICTIM)
