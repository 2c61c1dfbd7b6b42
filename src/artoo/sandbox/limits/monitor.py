"""Check memory, tasks, disk and inotify of a sandbox at intervals, and kill the command that exceeds a limit.

The monitor runs outside of the sandbox while commands run in it. `ports.workspace` defines the limits.

    memory       private and shared memory of processes, files in memory, buffers of sockets and pipes
    tasks        processes and their threads
    disk         the upper directories and the task's /tmp; files that were removed while open
    inotify      instances; the kernel allows each user only a few, which the user's own programs need too

To check the processes, the monitor reads /proc for each process four times a second. To check the directories, it
walks them. The walk starts earlier if the free space on disk changes fast. After a slow check the pause is longer,
so that checks use at most a twentieth of a processor. While no command runs, nothing is read at all.
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
    members_below,
    memory_of,
    written_bytes,
)
from artoo.sandbox.supervisor.processes import read_file

_PAUSE_SECONDS, _DISK_PAUSE_SECONDS = 0.25, 0.5
_PAUSE_PER_LOOK, _HURRIED_PAUSE_PER_LOOK = 20, 4
"""The pause after a check, as a multiple of the time that the check took. The second, shorter pause applies while
the disk fills fast."""
_AFTER_EXCESS_SECONDS = 0.5
"""Number of seconds in which the kernel frees the memory of a killed command. No other command is blamed for it
during this time."""
_MOST_SUSPECTS = 200
"""The maximum number of processes whose command is looked up, because that would take long with thousands of
processes."""
_GRACE_PART = 32
_LITTLE = (32 << 20, 1_000)
"""Changes below these numbers of bytes and paths do not start an early walk over the directories."""
_HOPELESS = 4
"""If the number of processes reaches this multiple of its limit, the whole sandbox is killed, because a fork bomb
grows too fast to be ended otherwise."""
_UNLIMITED = (1 << 62, 1 << 62)
_FIRST_VICTIM = b"1000"
_INOTIFY = "/proc/sys/fs/inotify/max_user_instances"

Use = tuple[int, int]
"""The number of bytes on disk, and the number of paths."""


@dataclass(frozen=True, slots=True)
class Excess:
    """The limit that a sandbox exceeds, and the command that is killed for that.

    `command` is the id of the command that uses most of the resource. It is None if that command cannot be
    identified. `pid` is the largest process of the command, as seen from outside. It is 0 if no process runs any
    more. `note` explains the excess to a reader.
    """

    status: EndStatus
    command: str | None
    pid: int
    note: str


class SandboxMonitor:
    """Watches the descendants of a supervisor, and the directories in `directories`. The monitor must be created in
    an event loop.

    What the directories contain at that time counts for no command. `on_excess` must kill the command immediately.
    It is called in the event loop, and again if the excess continues.
    """

    def __init__(
        self, directories: tuple[Path, ...], limits: SandboxLimits, on_excess: Callable[[Excess], object]
    ) -> None:
        self._on_excess = on_excess
        self._awake = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._starts = 0
        self._walking = asyncio.Lock()
        self._kills = _kills_by_kernel()
        self._processes = _ProcessWatch(limits)
        self._disk = _DiskWatch(limits, directories)
        self._first_look = asyncio.get_running_loop().run_in_executor(None, self._disk.look)

    def start(self, leader: int) -> None:
        """Watch the descendants of `leader` (the supervisor's pid, as seen from outside) until `stop` is called."""
        self._processes.leader = self._disk.leader = leader
        self._running = asyncio.get_running_loop().create_task(self._watch())

    async def stop(self) -> None:
        """Stop the checks. Idempotent."""
        await asyncio.wait({self._first_look})
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})
            self._running = None

    def wake(self) -> None:
        """Resume the checks, because a command was started. Call this when the command's process exists."""
        self._starts += 1
        self._awake.set()

    def explain_kill(self, command: str) -> tuple[EndStatus, str] | None:
        """Return the status and the note of a command that was ended by a SIGKILL. Return None if the cause is not
        known.

        Two causes are known. Either the command was a fork bomb, or the kernel has killed a process for lack of
        memory since the last call. That process may also have belonged to another command.
        """
        bomb = self._processes.bomb
        if bomb is not None and bomb.command == command:
            return bomb.status, bomb.note
        before, self._kills = self._kills, _kills_by_kernel()
        lacked = "memory_limit", "the machine ran out of memory, and the kernel ended it"
        return lacked if self._kills > before else None

    def fills_disk(self) -> bool:
        """True if a command that has just ended may have filled the disk. This check takes microseconds."""
        return self._disk.fills_fast()

    async def excess_left_by(self, command: str) -> Excess | None:
        """Check at once whether a command that has just ended exceeded a disk limit. Return that limit."""
        excess = await self._look_at_disk()
        if excess is None or not excess.pid or excess.command == command:
            return excess
        self._on_excess(excess)
        return None

    async def _watch(self) -> None:
        """Watch until cancelled. A slow walk over the directories does not delay the checks of processes."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_processes())
            group.create_task(self._watch_disk())

    async def _watch_processes(self) -> None:
        pause = _PAUSE_SECONDS
        while True:
            # Nothing is read before the first pause is over, because most commands end before that.
            await self._awake.wait()
            await asyncio.sleep(pause)
            seen = self._starts
            excess, taken = await asyncio.to_thread(self._processes.timed_look)
            pause = max(_PAUSE_SECONDS, _PAUSE_PER_LOOK * taken)
            if excess is not None:
                self._on_excess(excess)
                pause = _AFTER_EXCESS_SECONDS
            elif self._processes.is_idle and seen == self._starts:
                self._awake.clear()

    async def _watch_disk(self) -> None:
        while True:
            await self._awake.wait()
            began = time.monotonic()
            excess = await self._look_at_disk()
            taken = time.monotonic() - began
            if excess is not None and excess.pid:
                self._on_excess(excess)
            await asyncio.sleep(max(_DISK_PAUSE_SECONDS, _HURRIED_PAUSE_PER_LOOK * taken))
            for _ in range(int((_PAUSE_PER_LOOK - _HURRIED_PAUSE_PER_LOOK) * taken / _PAUSE_SECONDS)):
                if self._disk.fills_fast():
                    break
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _look_at_disk(self) -> Excess | None:
        await asyncio.shield(self._first_look)
        async with self._walking:
            return await asyncio.to_thread(self._disk.look)


class _ProcessWatch:
    """Checks the number of processes, their memory, and their inotify instances."""

    def __init__(self, limits: SandboxLimits) -> None:
        self.leader = 0
        self.is_idle = False
        self.bomb: Excess | None = None
        self._limits = limits
        self._offered = set[int]()

    def timed_look(self) -> tuple[Excess | None, float]:
        """Check, and also return the processor time that the check used. The elapsed time is not used, because a
        busy command would make it too long."""
        began = time.thread_time()
        return self.look(), time.thread_time() - began

    def look(self) -> Excess | None:
        """Return the limit that the processes exceed now, or None. Blocking."""
        members = members_below(self.leader)
        self.is_idle = not members
        tasks, processes = sum(one.threads for one in members), self._limits.processes
        # checked first, because the other checks take long if there are thousands of processes
        if tasks > processes:
            note = f"{tasks} processes and threads in the sandbox, {processes} are allowed"
            excess = _blame("process_limit", note, members, {one.pid: one.threads for one in members})
            if len(members) > processes:
                self._end_bomb(members, excess)
            return excess
        self._offer(members)
        held = held_by(members)
        memory, allowed = memory_of(members, held), self._limits.memory_bytes
        # count again with shared pages divided among the processes, because servers fork workers that share memory
        if memory > allowed:
            memory = memory_of(members, held, fair=True)
        if memory > allowed:
            sizes = {one.pid: memory_of([one], held_by([one]), fair=True) for one in members}
            note = f"{_mib(memory)} of memory in the sandbox, {_mib(allowed)} are allowed"
            return _blame("memory_limit", note, members, sizes)
        return _too_many_watchers(held, members)

    def _end_bomb(self, members: list[Member], excess: Excess) -> None:
        """Kill a fork bomb by a single system call, because it would fork faster than its processes are killed one
        by one.

        Every new process leaves less processor time for artoo's event loop. If each process has its own group, no
        single call can kill all of them. If such a bomb has grown too large, the first process of the sandbox is
        killed, which ends the whole sandbox.
        """
        group, share = Counter(one.group for one in members).most_common(1)[0]
        with suppress(OSError):
            if share > len(members) // 4:
                self.bomb = excess
                os.killpg(group, signal.SIGKILL)
            elif len(members) > _HOPELESS * self._limits.processes:
                self.bomb = excess
                os.kill(self.leader, signal.SIGKILL)

    def _offer(self, members: list[Member]) -> None:
        """Mark the processes of the sandbox as those that the kernel kills first when the machine runs out of
        memory."""
        found = {one.pid for one in members}
        for pid in found - self._offered:
            with suppress(OSError):
                Path(f"/proc/{pid}/oom_score_adj").write_bytes(_FIRST_VICTIM)
        self._offered = found


class _DiskWatch:
    """Checks the size of directories, and of deleted files that processes still hold open.

    A workspace may already be full, and then a command that deletes files must be able to run. Therefore a command
    may always add a little to the lowest usage that was seen (`_lowest`, which is None until the next check sets
    it).
    """

    def __init__(self, limits: SandboxLimits, directories: tuple[Path, ...]) -> None:
        self.leader = 0
        self._limits: Use = (limits.disk_bytes, limits.paths)
        self._directories = directories
        self._systems = tuple({os.stat(place).st_dev: place for place in directories}.values())
        self._used: Use = (0, 0)
        self._lowest: Use | None = None
        self._free = self._free_now()
        self._written: dict[int, int] = {}

    def fills_fast(self) -> bool:
        """True if the free space has changed, since the last check, by a quarter of the space that is left until
        the limits.

        Increases count as much as decreases, because space that other programs free may hide what a command writes.
        """
        changed = _each(lambda before, now: abs(before - now), self._free, self._free_now())
        left = _each(int.__sub__, self._limits, self._used)
        return any(one > max(little, rest // 4) for one, little, rest in zip(changed, _LITTLE, left, strict=True))

    def look(self) -> Excess | None:
        """Return the disk limit that is exceeded now, or None. Blocking."""
        self._free = self._free_now()
        members = members_below(self.leader) if self.leader else []
        most = _UNLIMITED if self._lowest is None else _each(_with_grace, self._limits, self._lowest)
        named, paths = disk_usage(self._directories, *most)
        self._used = named + held_by(members).disk_bytes, paths
        before, self._written = self._written, {one.pid: written_bytes(one.pid) for one in members}
        if self._used[0] <= most[0] and self._used[1] <= most[1]:
            self._lowest = _each(min, self._lowest or self._used, self._used)
            return None
        # A killed command can write until it is dead, so the next check measures how much it left behind.
        self._lowest = None if members else self._used
        note = (
            f"{_mib(self._used[0])} and {paths} paths in the workspace and its /tmp,"
            f" {_mib(self._limits[0])} and {self._limits[1]} paths are allowed"
        )
        if not members:
            return Excess("disk_limit", None, 0, note)
        shares = {pid: size - before.get(pid, 0) for pid, size in self._written.items()}
        # space was reserved but not written, so the process that was started last is blamed
        if not any(shares.values()):
            shares[max(shares)] = 1
        return _blame("disk_limit", note, members, shares)

    def _free_now(self) -> Use:
        found = (0, 0)
        for place in self._systems:
            with suppress(OSError):
                one = os.statvfs(place)
                found = found[0] + one.f_bfree * one.f_frsize, found[1] + one.f_ffree
        return found


def machine_tasks() -> int:
    """Return the number of processes and threads on this machine. Return 0 if it cannot be read."""
    words = read_file("/proc/loadavg").split()
    return int(words[3].partition(b"/")[2]) if len(words) > 3 else 0


def _too_many_watchers(held: Held, members: list[Member]) -> Excess | None:
    """Check that half of the few inotify instances which the kernel allows a user are left for the user's own
    programs."""
    allowed = int(read_file(_INOTIFY) or 0) // 2
    found = held.inotify_instances(members)
    if not allowed or found <= allowed:
        return None
    note = f"{found} inotify instances in the sandbox, {allowed} are allowed"
    return _blame("memory_limit", note, members, held.watchers)


def _blame(status: EndStatus, note: str, members: list[Member], shares: Mapping[int, int]) -> Excess:
    """Find the command whose processes together use most of a resource.

    Each command has a mark in the environment of its processes. A process belongs to the command whose mark it or
    an ancestor has. If no process shows a mark, the processes are grouped by session instead.
    """
    by_pid = {one.pid: one for one in members}
    largest = sorted(members, key=lambda one: shares.get(one.pid, 0), reverse=True)[:_MOST_SUSPECTS]
    owners = {one.pid: _owner(one, by_pid) for one in largest}
    totals = Counter[str | int]()
    for one in largest:
        totals[owners[one.pid] or one.session] += shares.get(one.pid, 0)
    ((worst, _),) = totals.most_common(1)
    pid = next(one.pid for one in largest if worst == (owners[one.pid] or one.session))
    return Excess(status, owners[pid], pid, note)


def _owner(one: Member, by_pid: Mapping[int, Member]) -> str | None:
    """Return the id of the command whose mark a process or its nearest marked ancestor carries."""
    above: Member | None = one
    while above is not None:
        found = command_of(above.pid)
        if found is not None:
            return found
        above = by_pid.get(above.parent)
    return None


def _with_grace(limit: int, least: int) -> int:
    return max(limit, least + limit // _GRACE_PART)


def _each(combine: Callable[[int, int], int], first: Use, second: Use) -> Use:
    return combine(first[0], second[0]), combine(first[1], second[1])


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"


def _kills_by_kernel() -> int:
    words = read_file("/proc/vmstat").partition(b"oom_kill ")[2].split(None, 1)
    return int(words[0]) if words else 0
