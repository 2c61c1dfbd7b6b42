"""Reads from /proc which processes run below another one, and what they use."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import NamedTuple

_PROC = "/proc"
_MARK = b"ARTOO_PROCESS="
"""The variable by which the supervisor marks the processes of a command (`supervisor.supervisor`)."""


class Member(NamedTuple):
    """A process of a sandbox, with process ids as they are seen from here. `threads`: at least one."""

    pid: int
    parent: int
    group: int
    session: int
    threads: int


class Memory(NamedTuple):
    """Bytes in memory: of the process itself, and that it maps together with others. Pages of files on disk do not
    count, because the kernel can take them back."""

    own: int
    shared: int


def members_below(leader: int, proc: str = _PROC) -> list[Member]:
    """Return the processes below `leader`, without it."""
    children: dict[int, list[Member]] = defaultdict(list)
    for entry in os.listdir(proc):
        found = member(int(entry), proc) if entry.isdigit() else None
        if found is not None:
            children[found.parent].append(found)
    members: list[Member] = []
    todo = children.pop(leader, [])
    while todo:
        members.append(todo.pop())
        todo.extend(children.pop(members[-1].pid, ()))
    return members


def member(pid: int, proc: str = _PROC) -> Member | None:
    """Return a process; None when it is gone."""
    fields = read_file(f"{proc}/{pid}/stat").rpartition(b")")[2].split()
    return Member(pid, *map(int, (*fields[1:4], fields[17]))) if fields else None


def memory_of(pid: int) -> Memory:
    """Return the memory of a process. Pages that a fork shares count in each process; see `fair_memory_of`."""
    table = _table(f"{_PROC}/{pid}/status")
    own = sum(table.get(name, 0) for name in (b"RssAnon", b"VmSwap", b"VmPTE"))
    return Memory(own * 1024, table.get(b"RssShmem", 0) * 1024)


def fair_memory_of(pid: int) -> Memory:
    """Return the same, with shared pages divided among the processes that share them. Slow for large processes."""
    table = _table(f"{_PROC}/{pid}/smaps_rollup")
    if not table:
        return memory_of(pid)
    return Memory((table.get(b"Pss_Anon", 0) + table.get(b"SwapPss", 0)) * 1024, table.get(b"Pss_Shmem", 0) * 1024)


def written_bytes(pid: int) -> int:
    """Return how much a process and its ended children have written so far; 0 when it is gone."""
    table = _table(f"{_PROC}/{pid}/io")
    return table.get(b"wchar", 0) + table.get(b"write_bytes", 0)


def command_of(pid: int) -> str | None:
    """Return the id of the command that a process belongs to; None when it does not show one."""
    for variable in read_file(f"{_PROC}/{pid}/environ").split(b"\0"):
        if variable.startswith(_MARK):
            return os.fsdecode(variable.removeprefix(_MARK))
    return None


def read_file(path: str) -> bytes:
    """Return the content of a file of /proc; empty when its process is gone or hides it."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def _table(path: str) -> dict[bytes, int]:
    lines = (line.split() for line in read_file(path).splitlines())
    return {words[0].rstrip(b":"): int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}
