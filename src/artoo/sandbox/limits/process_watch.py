"""Looks at the processes of a sandbox: their number, what they have in memory, what they take from the user."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from artoo.ports.workspace import SandboxLimits
from artoo.sandbox.limits.hidden_memory import Held, held_by
from artoo.sandbox.limits.looking import Counters, Excess, Pace, blame, changed, mib
from artoo.sandbox.limits.process_tree import (
    Member,
    Memory,
    fair_memory_of,
    members_below,
    memory_of,
    read_file,
)

_LEAST_MEMORY, _LEAST_TASKS = 32 << 20, 16
"""Smaller movements of the machine's counters are no reason to look."""
_FIRST_VICTIM = b"1000"
_INOTIFY = "/proc/sys/fs/inotify/max_user_instances"


class ProcessWatch:
    """Looks at the processes below `leader`."""

    def __init__(self, leader: int, limits: SandboxLimits) -> None:
        self._leader = leader
        self._limits = limits
        self.pace = Pace()
        self._most_available, self._fewest_tasks = 0, 0
        self._used = (0, 0)
        self._offered = set[int]()
        self.is_idle = False

    def begin(self, now: float) -> None:
        """Look soon, because a command was started."""
        self.is_idle = False
        self._most_available, self._fewest_tasks = 0, 1 << 62
        self.pace.begin(now)

    def is_due(self, now: float, counters: Counters) -> bool:
        """True if it is time to look."""
        self._most_available = max(self._most_available, counters.available)
        self._fewest_tasks = min(self._fewest_tasks, counters.tasks)
        memory, tasks = self._used
        taken = self._most_available - counters.available, counters.tasks - self._fewest_tasks
        return self.pace.is_due(
            now,
            moved=taken[0] > max(_LEAST_MEMORY, (self._limits.memory_bytes - memory) // 4)
            or taken[1] > max(_LEAST_TASKS, (self._limits.processes - tasks) // 4),
        )

    def look(self, counters: Counters) -> Excess | None:
        """Return the limit that is exceeded now. Blocking."""
        began, before = time.monotonic(), self._used
        members = members_below(self._leader)
        self.is_idle = not members
        excess = self._exceeded(members)
        self._most_available, self._fewest_tasks = counters.available, counters.tasks
        self.pace.looked(began, moved=changed(before, self._used), exceeded=excess is not None)
        return excess

    def _exceeded(self, members: list[Member]) -> Excess | None:
        self._offer(members)
        tasks, allowed = sum(one.threads for one in members), self._limits.processes
        if tasks > allowed:  # asked first: of thousands of processes the rest would take long
            self._used = self._used[0], tasks
            note = f"{tasks} processes and threads in the sandbox, {allowed} are allowed"
            return blame("process_limit", note, members, {one.pid: one.threads for one in members})
        held, allowed = held_by(one.pid for one in members), self._limits.memory_bytes
        memory = _total((memory_of(one.pid) for one in members), held)
        if memory > allowed:  # servers fork workers that share most of it
            memory = _total((fair_memory_of(one.pid) for one in members), held)
        self._used = memory, tasks
        if memory > allowed:
            sizes = {one.pid: _total([fair_memory_of(one.pid)], held_by([one.pid])) for one in members}
            note = f"{mib(memory)} of memory in the sandbox, {mib(allowed)} are allowed"
            return blame("memory_limit", note, members, sizes)
        return _too_many_watchers(held, members)

    def _offer(self, members: list[Member]) -> None:
        """Name the processes as the first to go when the machine runs out of memory."""
        pids = {one.pid for one in members}
        for pid in pids - self._offered:
            with suppress(OSError):
                Path(f"/proc/{pid}/oom_score_adj").write_bytes(_FIRST_VICTIM)
        self._offered = pids


def _total(memories: Iterable[Memory], held: Held) -> int:
    """Add up. A file in memory that is open and mapped is in both counts, so the larger one is taken."""
    listed = list(memories)
    shared = max(sum(one.shared for one in listed), held.file_bytes)
    return sum(one.own for one in listed) + shared + held.buffer_bytes


def _too_many_watchers(held: Held, members: list[Member]) -> Excess | None:
    """Keep half of the inotify instances for the user's own programs: the kernel allows a user few."""
    allowed = int(read_file(_INOTIFY) or 0) // 2
    found = held.inotify_instances(members)
    if not allowed or found <= allowed:
        return None
    note = f"{found} inotify instances in the sandbox, {allowed} are allowed"
    return blame("memory_limit", note, members, held.watchers)
