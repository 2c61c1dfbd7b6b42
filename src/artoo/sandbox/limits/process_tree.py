"""Reads from /proc which processes run below another one, and what they use."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_PROC = "/proc"
_OWN_MEMORY = (b"RssAnon:", b"VmSwap:", b"VmPTE:")
_FAIR_MEMORY = (b"Pss_Anon:", b"SwapPss:")
_WRITTEN = (b"wchar:", b"write_bytes:")
_MARK = b"ARTOO_PROCESS="
"""The variable by which the supervisor marks the processes of a command (`supervisor.supervisor`)."""


class Member(NamedTuple):
    """A process of a sandbox, with process ids as they are seen from here. `threads`: at least one."""

    pid: int
    parent: int
    session: int
    threads: int


def members_below(leader: int, proc: str = _PROC) -> list[Member]:
    """Return the processes below `leader`, without it."""
    children: dict[int, list[Member]] = defaultdict(list)
    for entry in os.listdir(proc):
        fields = read_file(f"{proc}/{entry}/stat").rpartition(b")")[2].split() if entry.isdigit() else []
        if fields:
            found = Member(int(entry), int(fields[1]), int(fields[3]), int(fields[17]))
            children[found.parent].append(found)
    members: list[Member] = []
    todo = children.pop(leader, [])
    while todo:
        member = todo.pop()
        members.append(member)
        todo.extend(children.pop(member.pid, ()))
    return members


def own_memory(pid: int, proc: str = _PROC) -> int:
    """Return the bytes that a process has without shared memory and pages of files; 0 when it is gone.

    Pages that a fork shares count in each process; see `fair_memory`.
    """
    return 1024 * _sum_of(_OWN_MEMORY, f"{proc}/{pid}/status")


def fair_memory(pid: int, proc: str = _PROC) -> int:
    """Return the same with shared pages divided among the processes that share them. Takes long for large ones."""
    return min(own_memory(pid, proc), 1024 * _sum_of(_FAIR_MEMORY, f"{proc}/{pid}/smaps_rollup") or 1 << 62)


def written_bytes(pid: int, proc: str = _PROC) -> int:
    """Return how much a process and its ended children have written so far; 0 when it is gone or not readable."""
    return _sum_of(_WRITTEN, f"{proc}/{pid}/io")


def command_of(pid: int, proc: str = _PROC) -> str | None:
    """Return the id of the command that a process belongs to; None when it does not show one."""
    for variable in read_file(f"{proc}/{pid}/environ").split(b"\0"):
        if variable.startswith(_MARK):
            return os.fsdecode(variable.removeprefix(_MARK))
    return None


def read_file(path: str | Path) -> bytes:
    """Return the content of a file of /proc; empty when its process is gone or hides it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        pieces: list[bytes] = []
        while piece := os.read(descriptor, 1 << 16):
            pieces.append(piece)
        return b"".join(pieces)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _sum_of(names: Iterable[bytes], path: str) -> int:
    lines = (line.split() for line in read_file(path).splitlines())
    return sum(int(words[1]) for words in lines if len(words) > 1 and words[0] in names)
