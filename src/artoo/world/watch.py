"""Looks at a running command from outside: how many processes, how much memory, how much disk."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from artoo.ports.sandbox import Limits, RunStatus

_FIRST_LOOK_SECONDS = 0.1
_PAUSE_SECONDS = 0.1
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tree of processes uses now. Memory in bytes, shared pages counted in every process."""

    processes: int
    memory_bytes: int


def tree_usage(leader: int, proc: Path = Path("/proc")) -> Usage:
    """The usage of `leader` and all its descendants."""
    children: dict[int, list[int]] = defaultdict(list)
    resident: dict[int, int] = {}
    for entry in os.listdir(proc):
        if entry.isdigit():
            parsed = _read_stat(proc / entry / "stat")
            if parsed is not None:
                children[parsed[0]].append(int(entry))
                resident[int(entry)] = parsed[1]
    members = list(_descendants(leader, children))
    return Usage(len(members), sum(resident.get(pid, 0) for pid in members) * _PAGE)


def descendants(leader: int, proc: Path = Path("/proc")) -> list[int]:
    """The processes below `leader`, without it."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in os.listdir(proc):
        if entry.isdigit():
            parsed = _read_stat(proc / entry / "stat")
            if parsed is not None:
                children[parsed[0]].append(int(entry))
    return [pid for pid in _descendants(leader, children) if pid != leader]


def _read_stat(path: Path) -> tuple[int, int] | None:
    """Parent and resident pages of a process, None when it is gone."""
    try:
        fields = path.read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[1]), int(fields[21])


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
    await asyncio.sleep(_FIRST_LOOK_SECONDS)
    while True:
        pid = leader()
        if pid is not None:
            usage = await asyncio.to_thread(tree_usage, pid)
            if usage.processes > limits.processes:
                return stop("process_limit")
            if usage.memory_bytes > limits.memory_bytes:
                return stop("memory_limit")
        used, paths = await asyncio.to_thread(disk_usage, directories, limits.disk_bytes, limits.paths)
        if used > limits.disk_bytes or paths > limits.paths:
            return stop("disk_limit")
        await asyncio.sleep(_PAUSE_SECONDS)
