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
import time
from collections.abc import Callable
from pathlib import Path

from artoo.ports.workspace import SandboxLimits
from artoo.sandbox.limits.disk_watch import DiskWatch
from artoo.sandbox.limits.fork_bomb import ForkBombWatch
from artoo.sandbox.limits.looking import Counters, Excess
from artoo.sandbox.limits.process_tree import read_file
from artoo.sandbox.limits.process_watch import ProcessWatch

_TICK_SECONDS, _TICK_PER_PAUSE = 0.08, 0.03
"""How often the counters are read: every 0.1 seconds, and every 0.3 when nothing has happened for a while."""

OnExcess = Callable[[Excess], object]
"""Ends the command, at once and without grace. Called in the event loop, again if the excess goes on."""


class SandboxMonitor:
    """Watches the processes below `leader` (the supervisor's pid, as seen from outside) and `directories`."""

    def __init__(
        self, leader: int, directories: tuple[Path, ...], limits: SandboxLimits, on_excess: OnExcess
    ) -> None:
        self._directories = directories
        self._on_excess = on_excess
        self._awake = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._starts = 0
        self._kills = _kills_by_kernel()
        self._bombs = ForkBombWatch(leader, limits.processes)
        self._processes = ProcessWatch(leader, limits)
        self._disk = DiskWatch(leader, limits, directories)

    def wake(self) -> None:
        """Begin to look again, because a command was started. To be called when its process exists."""
        self._starts += 1
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
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_for_bombs())
            group.create_task(self._look_when_due())

    async def _watch_for_bombs(self) -> None:
        while True:
            await self._awake.wait()
            self._report(self._bombs.look())
            await self._sleep()

    async def _look_when_due(self) -> None:
        seen = 0
        while True:
            if not self._awake.is_set():
                await self._awake.wait()
                self._disk.begin(time.monotonic())
            if seen != self._starts:
                seen = self._starts
                self._processes.begin(time.monotonic())
            counters = Counters.read(self._directories)
            for watch in (self._processes, self._disk):
                if watch.is_due(time.monotonic(), counters):
                    self._report(await asyncio.to_thread(watch.look, counters))
            if self._processes.is_idle and seen == self._starts:
                self._awake.clear()
            else:
                await self._sleep()

    async def _sleep(self) -> None:
        await asyncio.sleep(_TICK_SECONDS + _TICK_PER_PAUSE * self._processes.pace.pause)

    def _report(self, excess: Excess | None) -> None:
        if excess is not None:
            self._on_excess(excess)


def _kills_by_kernel() -> int:
    lines = (line.split() for line in read_file("/proc/vmstat").splitlines())
    return next((int(words[1]) for words in lines if words[0] == b"oom_kill"), 0)
