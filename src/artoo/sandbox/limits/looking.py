"""Decides when a sandbox is looked at, and which command is to blame for an excess."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from artoo.ports.workspace import EndStatus
from artoo.sandbox.limits.process_tree import Member, command_of, read_file

SHORTEST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0
_PAUSE_PER_LOOK, _HURRIED_PAUSE_PER_LOOK = 30, 4
"""How many times its own duration a look is followed by a pause: at most 3 % of a processor, and 20 % while the
machine's counters move towards a limit."""
_MOST_SUSPECTS = 200
"""Of thousands of processes it would take long to find out the command."""
_AFTER_EXCESS_SECONDS = 0.5
"""How long the kernel may take to free what a killed command held, before the next command would be blamed."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit that a sandbox exceeds, and the command to end for it.

    `command` is the id of the command that holds most; None if its processes do not show it. `pid` is its largest
    process, as seen from outside. `note` says to a reader what was exceeded.
    """

    status: EndStatus
    command: str | None
    pid: int
    note: str


class Counters(NamedTuple):
    """The machine's counters: bytes of available memory, tasks, free bytes and inodes on disk."""

    available: int
    tasks: int
    free_bytes: int
    free_paths: int

    @classmethod
    def read(cls, directories: Iterable[Path]) -> Counters:
        """Read the counters, of the file systems of `directories`. Takes microseconds."""
        systems: dict[int, os.statvfs_result] = {}
        for place in directories:
            with suppress(OSError):
                systems[os.stat(place).st_dev] = os.statvfs(place)
        free_bytes = sum(one.f_bfree * one.f_frsize for one in systems.values())
        free_paths = sum(one.f_ffree for one in systems.values())
        return cls(available_memory(), machine_tasks(), free_bytes, free_paths)


class Pace:
    """Decides when to look again."""

    def __init__(self) -> None:
        self.pause = SHORTEST_PAUSE
        self._earliest = self._latest = 0.0

    def is_due(self, now: float, *, moved: bool) -> bool:
        """True if it is time; `moved`: the machine's counters give a reason."""
        return now >= self._latest or (moved and now >= self._earliest)

    def looked(self, began: float, *, moved: bool, exceeded: bool) -> None:
        """Plan the next look.

        `moved`: this one found another state than the last one; `exceeded`: a command is being ended.
        """
        now = time.monotonic()
        took = now - began
        self.pause = SHORTEST_PAUSE if moved else min(2 * self.pause, _LONGEST_PAUSE)
        self._earliest = now + _HURRIED_PAUSE_PER_LOOK * took
        self._latest = now + max(self.pause, _PAUSE_PER_LOOK * took)
        if exceeded:
            self._earliest = self._latest = now + _AFTER_EXCESS_SECONDS

    def begin(self, now: float) -> None:
        """Plan the first look after a command was started: most commands end before."""
        self.pause = SHORTEST_PAUSE
        self._earliest, self._latest = now, max(self._latest, now + SHORTEST_PAUSE)


def blame(status: EndStatus, note: str, members: list[Member], shares: Mapping[int, int]) -> Excess:
    """Find the command whose processes have most together.

    A command is known by the mark of its processes, and by their session where they hide it: a fork bomb may give
    each process a session of its own, and a server may have more threads than each of these.
    """
    largest = sorted(members, key=lambda one: shares.get(one.pid, 0), reverse=True)[:_MOST_SUSPECTS]
    commands = {one.pid: command_of(one.pid) for one in largest}
    totals = Counter[str | int]()
    for one in largest:
        totals[commands[one.pid] or one.session] += shares.get(one.pid, 0)
    ((worst, _),) = totals.most_common(1)
    pid = next(one.pid for one in largest if worst in (commands[one.pid], one.session))
    return Excess(status, commands[pid], pid, note)


def changed(before: tuple[int, int], now: tuple[int, int]) -> bool:
    """True if a use changed by more than a tenth."""
    return any(abs(new - old) * 10 > max(old, 1) for old, new in zip(before, now, strict=True))


def available_memory() -> int:
    """Return how much memory the machine can still give out, in bytes."""
    text = read_file("/proc/meminfo")
    at = text.find(b"MemAvailable:")
    return int(text[at:].split(None, 2)[1]) * 1024 if at >= 0 else 0


def machine_tasks() -> int:
    """Return how many processes and threads the machine has."""
    words = read_file("/proc/loadavg").split()
    return int(words[3].partition(b"/")[2]) if len(words) > 3 else 0


def mib(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"
