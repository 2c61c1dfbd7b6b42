"""Watches one sandbox from outside, for as long as it lives, and reports a command that exceeds its limits.

    machine's counters ── 10 times a second ──► moved? ──► look ──► Excess ──► the command is ended
    (free memory, tasks, free disk)             or a pause over      (the sandbox goes on)

A look reads /proc for every process of the sandbox, or walks its directories, so it takes milliseconds to seconds.
The counters of the whole machine only say *when* to look, and a look decides by what the sandbox itself holds: what
other programs do causes looks, and no false alarms. While no command runs, nothing is read at all.

    memory       what processes have for themselves and share, files in memory, buffers of sockets and pipes
    tasks        processes and their threads
    disk         the upper directories and the task's /tmp; files that were removed while open
    inotify      instances, of which the kernel allows a user so few that the user's own programs would starve
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from artoo.ports.workspace import EndStatus, SandboxLimits
from artoo.sandbox.limits.usage import (
    Held,
    Member,
    command_of,
    disk_usage,
    held_by,
    member,
    members_below,
    memory_of,
    pids,
    read_file,
    written_bytes,
)

_TICK_SECONDS, _TICK_PER_PAUSE = 0.08, 0.03
"""How often the counters are read: every 0.1 seconds, and every 0.3 when nothing has happened for a while."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0
_PAUSE_PER_LOOK, _HURRIED_PAUSE_PER_LOOK = 30, 4
"""How many times its own duration a look is followed by a pause: at most 3 % of a processor, and 20 % while the
machine's counters move towards a limit."""
_AFTER_EXCESS_SECONDS = 0.5
"""How long the kernel may take to free what a killed command held, before the next command would be blamed."""
_MOST_SUSPECTS, _SAMPLE = 200, 64
"""Of thousands of processes it would take long to find out the command, and of a fork bomb all."""
_GRACE_PART = 32
_FIRST_VICTIM = b"1000"
_INOTIFY = "/proc/sys/fs/inotify/max_user_instances"

Use = tuple[int, int]
"""Bytes of memory and tasks, or bytes on disk and paths."""


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


class SandboxMonitor:
    """Watches the processes below `leader` (the supervisor's pid, as seen from outside) and `directories`.

    `on_excess` ends the command, at once and without grace. It is called in the event loop, again if the excess
    goes on.
    """

    def __init__(
        self,
        leader: int,
        directories: tuple[Path, ...],
        limits: SandboxLimits,
        on_excess: Callable[[Excess], object],
    ) -> None:
        self._on_excess = on_excess
        self._awake = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._starts = 0
        self._kills = _kills_by_kernel()
        self._processes = _ProcessWatch(leader, limits)
        self._disk = _DiskWatch(leader, limits, directories)

    def wake(self) -> None:
        """Begin to look again, because a command was started. To be called when its process exists."""
        if not self._awake.is_set():
            self._disk.begin()
        self._starts += 1
        self._processes.begin()
        self._awake.set()

    def explain_kill(self) -> bool:
        """True if the kernel killed a process for lack of memory since this was asked last.

        To be asked when a command ended by a SIGKILL that artoo did not send. It may have been another process.
        """
        before, self._kills = self._kills, _kills_by_kernel()
        return self._kills > before

    def start(self) -> None:
        """Watch in the background until `stop`."""
        self._running = asyncio.get_running_loop().create_task(self.run())

    async def stop(self) -> None:
        """Stop watching. Idempotent."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})
            self._running = None

    async def run(self) -> None:
        """Watch until cancelled. The walk over directories may take long, and delays no look at processes."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch(self._processes))
            group.create_task(self._watch(self._disk))

    async def _watch(self, watch: _Watch) -> None:
        while True:
            await self._awake.wait()
            seen = self._starts
            if watch.is_due():
                excess = await asyncio.to_thread(watch.look)
                if excess is not None:
                    self._on_excess(excess)
            if self._processes.is_idle and watch is self._processes and seen == self._starts:
                self._awake.clear()
            else:
                await asyncio.sleep(_TICK_SECONDS + _TICK_PER_PAUSE * self._processes.pause)


class _Watch:
    """Looks at one kind of use when it is due. `least`: smaller movements of the counters are no reason to look."""

    def __init__(self, leader: int, limits: Use, least: Use) -> None:
        self.leader = leader
        self.limits = limits
        self.used: Use = (0, 0)
        self.pause = _SHORTEST_PAUSE
        self._least = least
        self._lowest: Use | None = None
        self._earliest = self._latest = 0.0

    def counters(self) -> Use:
        """Return what the whole machine uses, up to a constant. Takes microseconds."""
        raise NotImplementedError

    def exceeded(self) -> Excess | None:
        """Measure `used`, and return the limit that is exceeded. Blocking."""
        raise NotImplementedError

    def begin(self) -> None:
        """Plan a first look, because a command was started: most commands end before."""
        now = time.monotonic()
        self.pause, self._lowest = _SHORTEST_PAUSE, None
        self._earliest, self._latest = now, max(self._latest, now + _SHORTEST_PAUSE)

    def is_due(self) -> bool:
        """True if it is time, or the counters give a reason."""
        now, found = time.monotonic(), self.counters()
        lowest = self._lowest = _each(min, self._lowest or found, found)
        allowed = _each(max, self._least, _each(lambda limit, used: (limit - used) // 4, self.limits, self.used))
        moved = any(one - low > most for one, low, most in zip(found, lowest, allowed, strict=True))
        return now >= self._latest or (moved and now >= self._earliest)

    def look(self) -> Excess | None:
        """Return the limit that is exceeded now, and plan the next look. Blocking."""
        began, before, self._lowest = time.monotonic(), self.used, self.counters()
        excess = self.exceeded()
        now = time.monotonic()
        changed = any(abs(new - old) * 10 > max(old, 1) for old, new in zip(before, self.used, strict=True))
        self.pause = _SHORTEST_PAUSE if changed else min(2 * self.pause, _LONGEST_PAUSE)
        self._earliest = now + _HURRIED_PAUSE_PER_LOOK * (now - began)
        self._latest = now + max(self.pause, _PAUSE_PER_LOOK * (now - began))
        if excess is not None:
            self._earliest = self._latest = now + _AFTER_EXCESS_SECONDS
        return excess


class _ProcessWatch(_Watch):
    """Looks at the processes: their number, what they have in memory, what they take from the user."""

    def __init__(self, leader: int, limits: SandboxLimits) -> None:
        super().__init__(leader, (limits.memory_bytes, limits.processes), (32 << 20, 16))
        self.is_idle = False
        self._offered = set[int]()

    def begin(self) -> None:
        self.is_idle = False
        super().begin()

    def counters(self) -> Use:
        text = read_file("/proc/meminfo")
        at = text.find(b"MemAvailable:")
        return -int(text[at:].split(None, 2)[1]) * 1024 if at >= 0 else 0, machine_tasks()

    def exceeded(self) -> Excess | None:
        bomb = self._bomb()
        if bomb is not None:
            return bomb
        members = members_below(self.leader)
        self.is_idle = not members
        self._offer(members)
        memory, (allowed, most) = self.used[0], self.limits
        tasks = sum(one.threads for one in members)
        if tasks > most:  # asked first: of thousands of processes the rest would take long
            self.used = memory, tasks
            note = f"{tasks} processes and threads in the sandbox, {most} are allowed"
            return _blame("process_limit", note, members, {one.pid: one.threads for one in members})
        held = held_by(members)
        memory = memory_of(members, held)
        if memory > allowed:  # servers fork workers that share most of it
            memory = memory_of(members, held, fair=True)
        self.used = memory, tasks
        if memory > allowed:
            sizes = {one.pid: memory_of([one], held_by([one]), fair=True) for one in members}
            note = f"{_mib(memory)} of memory in the sandbox, {_mib(allowed)} are allowed"
            return _blame("memory_limit", note, members, sizes)
        return _too_many_watchers(held, members)

    def _offer(self, members: list[Member]) -> None:
        """Name the processes as the first to go when the machine runs out of memory."""
        found = {one.pid for one in members}
        for pid in found - self._offered:
            with suppress(OSError):
                Path(f"/proc/{pid}/oom_score_adj").write_bytes(_FIRST_VICTIM)
        self._offered = found

    def _bomb(self) -> Excess | None:
        """End a fork bomb by one system call: children are born while processes are killed one by one.

        With each child, artoo and the supervisor get less of the processor, so an ordinary look comes too late. A
        bomb in which each process has a group of its own ends with the sandbox.
        """
        words = read_file(f"/proc/{self.leader}/status").partition(b"NSpid:")[2].splitlines()[:1]
        if not words or words[0].split()[1:] != [b"1"]:
            return None  # no process 1 of a namespace of its own, whose /proc shows the sandbox alone
        count = len(pids(f"/proc/{self.leader}/root/proc"))
        if count <= self.limits[1]:
            return None
        newest = [one for pid in sorted(pids())[-_SAMPLE:] if (one := self._inside(pid)) is not None]
        if not newest:
            return None
        group, share = Counter(one.group for one in newest).most_common(1)[0]
        suspect = next(one.pid for one in newest if one.group == group)
        note = f"{count} processes in the sandbox, {self.limits[1]} are allowed"
        excess = Excess("process_limit", command_of(suspect), suspect, note)
        with suppress(OSError):
            if share < len(newest) // 4:
                os.kill(self.leader, signal.SIGKILL)
            else:
                os.killpg(group, signal.SIGKILL)
        return excess

    def _inside(self, pid: int) -> Member | None:
        try:
            same = os.readlink(f"/proc/{pid}/ns/pid") == os.readlink(f"/proc/{self.leader}/ns/pid")
        except OSError:  # it has ended, or is another user's
            return None
        return member(pid) if same else None


class _DiskWatch(_Watch):
    """Looks at directories, and at files without a name that processes hold."""

    def __init__(self, leader: int, limits: SandboxLimits, directories: tuple[Path, ...]) -> None:
        super().__init__(leader, (limits.disk_bytes, limits.paths), (32 << 20, 1_000))
        self._directories = directories
        self._ceiling: Use | None = None
        self._written: dict[int, int] = {}
        self._has_looked = False

    def begin(self) -> None:
        """Start over when a command starts in a sandbox in which nothing ran. The first look is due at once."""
        self._ceiling, self._written = None, {}
        if self._latest:
            super().begin()

    def counters(self) -> Use:
        systems: dict[int, os.statvfs_result] = {}
        for place in self._directories:
            with suppress(OSError):
                systems[os.stat(place).st_dev] = os.statvfs(place)
        free = [(one.f_bfree * one.f_frsize, one.f_ffree) for one in systems.values()]
        return -sum(size for size, _ in free), -sum(paths for _, paths in free)

    def exceeded(self) -> Excess | None:
        """Compare with the limits, or with a little more than there was before the command.

        A command that tidies up must be able to run in a workspace that is full.
        """
        members = (
            members_below(self.leader) if self._has_looked else []
        )  # the first look is at what was there before
        self._has_looked = True
        named, paths = disk_usage(self._directories, *(self._ceiling or (1 << 62, 1 << 62)))
        self.used = named + held_by(members).disk_bytes, paths
        before, self._written = self._written, {one.pid: written_bytes(one.pid) for one in members}
        most = _each(lambda used, limit: used + limit // _GRACE_PART, self.used, self.limits)
        ceiling = self._ceiling or _each(max, most, self.limits)
        exceeded = any(used > allowed for used, allowed in zip(self.used, ceiling, strict=True))
        # After an excess the next look finds out what the command has left, which writes until it is dead.
        self._ceiling = None if exceeded else _each(max, _each(min, most, ceiling), self.limits)
        if not exceeded or not members:
            return None
        note = (
            f"{_mib(self.used[0])} and {paths} paths in the workspace and its /tmp,"
            f" {_mib(self.limits[0])} and {self.limits[1]} paths are allowed"
        )
        shares = {pid: size - before.get(pid, 0) for pid, size in self._written.items()}
        if not any(shares.values()):  # reserved and not written: the last that was started
            shares[max(shares)] = 1
        return _blame("disk_limit", note, members, shares)


def machine_tasks() -> int:
    """Return how many processes and threads the machine has; 0 where it does not say."""
    words = read_file("/proc/loadavg").split()
    return int(words[3].partition(b"/")[2]) if len(words) > 3 else 0


def _too_many_watchers(held: Held, members: list[Member]) -> Excess | None:
    """Keep half of the inotify instances for the user's own programs: the kernel allows a user few."""
    allowed = int(read_file(_INOTIFY) or 0) // 2
    found = held.inotify_instances(members)
    if not allowed or found <= allowed:
        return None
    note = f"{found} inotify instances in the sandbox, {allowed} are allowed"
    return _blame("memory_limit", note, members, held.watchers)


def _blame(status: EndStatus, note: str, members: list[Member], shares: Mapping[int, int]) -> Excess:
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


def _each(combine: Callable[[int, int], int], first: Use, second: Use) -> Use:
    return combine(first[0], second[0]), combine(first[1], second[1])


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"


def _kills_by_kernel() -> int:
    words = read_file("/proc/vmstat").partition(b"oom_kill ")[2].split(None, 1)
    return int(words[0]) if words else 0
