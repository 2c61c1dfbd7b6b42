"""Looks at the processes of a sandbox: their number, what they have in memory, what they take from the user."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from artoo.ports.workspace import SandboxLimits
from artoo.sandbox.limits.cgroup import Group
from artoo.sandbox.limits.disk_watch import disk_usage
from artoo.sandbox.limits.hidden_memory import Held, held_by
from artoo.sandbox.limits.looking import Counters, Excess, Pace, blame, changed, mib
from artoo.sandbox.limits.process_tree import Member, fair_memory, members_below, own_memory, read_file
from artoo.sandbox.reading.mount_table import in_memory

_LEAST_MEMORY, _LEAST_TASKS = 32 << 20, 16
"""Smaller movements of the machine's counters are no reason to look."""
_WINDOW_SECONDS = 600.0
"""What hides is judged by what the machine lost in this time: over hours other programs take and free much more."""
_MANY_DESCRIPTORS, _MANY_MAPS = 2_000, 8 << 20
"""Fewer can hold no memory of the kernel that would matter."""
_FIRST_VICTIM = b"1000"
_INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")


class ProcessWatch:
    """Looks at the processes of a sandbox."""

    def __init__(
        self, leader: int, limits: SandboxLimits, directories: tuple[Path, ...], group: Group | None
    ) -> None:
        self._leader = leader
        self._limits = limits
        self._group = group
        self._directories = directories
        self._pace = Pace()
        self._most_available, self._fewest_tasks = 0, 0
        self._used = (0, 0)
        self._history: list[tuple[float, Counters]] = []
        self._offered = set[int]()
        self.is_idle = False

    def begin(self, now: float) -> None:
        """Start over when a command starts in a sandbox in which nothing ran."""
        self.is_idle = False
        self._most_available, self._fewest_tasks = 0, 1 << 62
        self._history.clear()
        self._pace.begin(now)

    def is_due(self, now: float, counters: Counters) -> bool:
        """True if it is time to look."""
        self._most_available = max(self._most_available, counters.available)
        self._fewest_tasks = min(self._fewest_tasks, counters.tasks)
        memory, tasks = self._used
        taken = self._most_available - counters.available, counters.tasks - self._fewest_tasks
        return self._pace.is_due(
            now,
            moved=taken[0] > max(_LEAST_MEMORY, (self._limits.memory_bytes - memory) // 4)
            or taken[1] > max(_LEAST_TASKS, (self._limits.processes - tasks) // 4),
        )

    def look(self, counters: Counters) -> Excess | None:
        """Return the limit that is exceeded now. Blocking."""
        began, before = time.monotonic(), self._used
        members = members_below(self._leader)
        self.is_idle = not members
        excess = self._exceeded(members, counters, began) if members else None
        self._most_available, self._fewest_tasks = counters.available, counters.tasks
        now = time.monotonic()
        self._pace.looked(now, now - began, moved=changed(before, self._used))
        if excess is not None:
            self._pace.wait_for_end(now)
        return excess

    def _exceeded(self, members: list[Member], counters: Counters, now: float) -> Excess | None:
        self._offer(members)
        tasks = sum(one.threads for one in members)
        if tasks > self._limits.processes:  # asked first: of thousands of processes the rest would take long
            self._used = self._used[0], tasks
            note = f"{tasks} processes and threads in the sandbox, {self._limits.processes} are allowed"
            return blame("process_limit", note, members, {one.pid: one.threads for one in members})
        held = held_by(one.pid for one in members)
        memory = self._memory(members, held)
        self._used = memory, tasks
        hidden = self._hidden(held, counters, now)
        if memory + hidden > self._limits.memory_bytes:
            sizes = {one.pid: own_memory(one.pid) + held_by([one.pid]).memory_bytes for one in members}
            note = f"{mib(memory + hidden)} of memory in the sandbox, {mib(self._limits.memory_bytes)} are allowed"
            return blame("memory_limit", note, members, sizes)
        return _too_many_watchers(held, members)

    def _memory(self, members: list[Member], held: Held) -> int:
        if self._group is None:
            own = sum(own_memory(one.pid) for one in members)
            if own + held.memory_bytes > self._limits.memory_bytes:  # servers fork workers that share most of it
                own = sum(fair_memory(one.pid) for one in members)
            return own + held.memory_bytes
        named, _ = disk_usage(in_memory(self._directories), 1 << 62, self._limits.paths)
        return self._group.memory_bytes() - named

    def _hidden(self, held: Held, counters: Counters, now: float) -> int:
        """Return the memory that the machine lost lately while processes hold something that hides."""
        self._history = [one for one in self._history if one[0] > now - _WINDOW_SECONDS]
        self._history.append((now, counters))
        if self._group is not None:
            return 0
        kernel = counters.kernel - min(one.kernel for _, one in self._history)
        many = held.hides or held.descriptors > _MANY_DESCRIPTORS or held.maps > _MANY_MAPS
        if many and kernel > self._limits.memory_bytes:
            return kernel
        shared = counters.shared - min(one.shared for _, one in self._history) - held.memory_bytes
        return shared if held.hides and shared > self._limits.memory_bytes else 0

    def _offer(self, members: list[Member]) -> None:
        """Name the processes as the first to go when the machine runs out of memory."""
        pids = {one.pid for one in members}
        for pid in pids - self._offered:
            with suppress(OSError):
                Path(f"/proc/{pid}/oom_score_adj").write_bytes(_FIRST_VICTIM)
        self._offered = pids


def _too_many_watchers(held: Held, members: list[Member]) -> Excess | None:
    allowed = int(read_file(_INOTIFY) or 0)
    found = held.inotify_instances(members)
    if not allowed or found <= allowed // 2:
        return None
    note = f"{found} inotify instances in the sandbox, {allowed // 2} of the user's {allowed} are allowed"
    return blame("memory_limit", note, members, held.watchers)
