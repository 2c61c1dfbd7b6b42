"""The processes below another one, by their parents in /proc, and what they use."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_OWN = (b"RssAnon", b"RssFile", b"VmPTE")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tree of processes uses now. `tasks`: processes and their threads; `memory_bytes`: pages of files and
    copies after a fork are counted in every process, shared memory is not in it."""

    members: tuple[int, ...]
    tasks: int
    memory_bytes: int


def tree_usage(leader: int, proc: Path = Path("/proc")) -> Usage:
    """The usage of `leader` and all its descendants."""
    found = _stats(proc)
    members = (leader, *_below(leader, found))
    tasks = sum(found[pid][1] for pid in members if pid in found)
    return Usage(members, tasks, sum(_own_memory(proc / str(pid) / "status") for pid in members))


def descendants(leader: int, proc: Path = Path("/proc")) -> list[int]:
    """The processes below `leader`, without it."""
    return list(_below(leader, _stats(proc)))


def _stats(proc: Path) -> dict[int, tuple[int, int]]:
    """Parent and threads of every process."""
    read = ((int(entry), _read_stat(proc / entry / "stat")) for entry in os.listdir(proc) if entry.isdigit())
    return {pid: found for pid, found in read if found is not None}


def _own_memory(path: Path) -> int:
    """Resident bytes of a process but for shared memory, with its page tables; 0 when it is gone."""
    try:
        fields = dict(line.split(b":", 1) for line in path.read_bytes().splitlines())
    except (OSError, ValueError):
        return 0
    return sum(int(fields.get(name, b"0").split()[0]) for name in _OWN) * 1024


def _read_stat(path: Path) -> tuple[int, int] | None:
    """Parent and threads of a process, None when it is gone."""
    try:
        fields = path.read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[1]), int(fields[17])


def _below(leader: int, stats: Mapping[int, tuple[int, int]]) -> Iterator[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for pid, (parent, _) in stats.items():
        children[parent].append(pid)
    todo = list(children.pop(leader, ()))
    while todo:
        pid = todo.pop()
        yield pid
        todo.extend(children.pop(pid, ()))
