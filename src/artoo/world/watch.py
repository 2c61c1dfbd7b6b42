"""Looks at a running command from outside: how many processes, how much memory, how much disk.

Memory is what the processes have to themselves, what they share, what lies in memory without a name, and the
buffers of their sockets and pipes; disk is what lies in the command's directories and what was removed there while
open. Where something is held that cannot be measured, what the machine has lost since the command started stands
for it.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from artoo.ports.sandbox import Limits, RunStatus
from artoo.world.held import Held, held_by

_FIRST_LOOK_SECONDS = 0.1
_PAUSE_SECONDS = 0.1
_OWN = (b"RssAnon", b"RssFile", b"VmPTE")
_FIRST_VICTIM = b"1000"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tree of processes uses now. `tasks`: processes and their threads; `memory_bytes`: pages of files and
    copies after a fork are counted in every process, shared memory is not in it."""

    members: tuple[int, ...]
    tasks: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Room:
    """What the machine has left: bytes in memory that are shared or lie in a file system, bytes free on disk."""

    shared_memory: int
    free_disk: int


def tree_usage(leader: int, proc: Path = Path("/proc")) -> Usage:
    """The usage of `leader` and all its descendants."""
    children: dict[int, list[int]] = defaultdict(list)
    threads: dict[int, int] = {}
    for entry in os.listdir(proc):
        if entry.isdigit():
            parsed = _read_stat(proc / entry / "stat")
            if parsed is not None:
                children[parsed[0]].append(int(entry))
                threads[int(entry)] = parsed[1]
    members = tuple(_descendants(leader, children))
    tasks = sum(threads.get(pid, 0) for pid in members)
    return Usage(members, tasks, sum(_own_memory(proc / str(pid) / "status") for pid in members))


def descendants(leader: int, proc: Path = Path("/proc")) -> list[int]:
    """The processes below `leader`, without it."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in os.listdir(proc):
        if entry.isdigit():
            parsed = _read_stat(proc / entry / "stat")
            if parsed is not None:
                children[parsed[0]].append(int(entry))
    return [pid for pid in _descendants(leader, children) if pid != leader]


def _own_memory(path: Path) -> int:
    """Resident bytes of a process but for shared memory, with its page tables; 0 when it is gone."""
    try:
        fields = dict(line.split(b":", 1) for line in path.read_bytes().splitlines())
    except (OSError, ValueError):
        return 0
    return sum(int(fields.get(name, b"0").split()[0]) for name in _OWN) * 1024


def _room(directories: Iterable[Path]) -> Room:
    with open("/proc/meminfo", "rb") as file:
        shared = next((int(line.split()[1]) * 1024 for line in file if line.startswith(b"Shmem:")), 0)
    systems = {place.stat().st_dev: os.statvfs(place) for place in directories if place.is_dir()}
    return Room(shared, sum(one.f_bfree * one.f_frsize for one in systems.values()))


def _read_stat(path: Path) -> tuple[int, int] | None:
    """Parent and threads of a process, None when it is gone."""
    try:
        fields = path.read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[1]), int(fields[17])


def _descendants(leader: int, children: dict[int, list[int]]) -> Iterable[int]:
    todo = [leader]
    while todo:
        pid = todo.pop()
        yield pid
        todo.extend(children.get(pid, ()))


def disk_usage(directories: Iterable[Path], stop_bytes: int, stop_paths: int) -> tuple[int, int]:
    """Bytes on disk and number of paths below `directories`; stops counting beyond either bound."""
    total, paths = 0, 0
    todo = [os.fsencode(directory) for directory in directories]
    while todo and total <= stop_bytes and paths <= stop_paths:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    seen = entry.stat(follow_symlinks=False)
                    paths += 1
                    total += seen.st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
        except OSError:  # being written at this moment, or closed by the command; the scan will see it
            continue
    return total, paths


async def watch_tree(
    leader: Callable[[], int | None],
    directories: tuple[Path, ...],
    limits: Limits,
    stop: Callable[[RunStatus], None],
) -> None:
    """Calls `stop` when the tree below `leader` uses more than `limits`. Runs until cancelled."""
    before = await asyncio.to_thread(_room, directories)
    await asyncio.sleep(_FIRST_LOOK_SECONDS)
    offered = False
    while True:
        pid = leader()
        found = await asyncio.to_thread(excess, pid, directories, limits, before)
        if found is not None:
            return stop(found)
        if pid is not None and not offered:
            await asyncio.to_thread(_offer, pid)
            offered = True
        await asyncio.sleep(_PAUSE_SECONDS)


def excess(leader: int | None, directories: tuple[Path, ...], limits: Limits, before: Room) -> RunStatus | None:
    """The first limit that is exceeded at this moment."""
    named, paths = disk_usage(directories, limits.disk_bytes, limits.paths)
    if named > limits.disk_bytes or paths > limits.paths:
        return "disk_limit"
    if leader is None:
        return None
    usage = tree_usage(leader)
    if usage.tasks > limits.processes:
        return "process_limit"
    held = held_by(usage.members)
    if usage.memory_bytes + held.memory_bytes > limits.memory_bytes:
        return "memory_limit"
    if named + held.disk_bytes > limits.disk_bytes:
        return "disk_limit"
    return _unexplained(named, held, limits, before, _room(directories)) if held.trace else None


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
