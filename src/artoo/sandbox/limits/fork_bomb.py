"""Ends a fork bomb within milliseconds of processor time.

With each child that it makes, this process and the supervisor get less of the processor, so an ordinary look and
a signal to each process come too late. The process group is killed in one system call instead: children are born
while processes are killed one by one. A bomb in which each process has a group of its own ends with the sandbox.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from artoo.sandbox.limits.looking import Excess, machine_tasks
from artoo.sandbox.limits.process_tree import Member, command_of, member, read_file

_SAMPLE = 64
"""How many of the newest processes of the machine are asked for their group."""


class ForkBombWatch:
    """Watches the sandbox whose first process is `leader`, by the number of tasks of the machine."""

    def __init__(self, leader: int, allowed: int) -> None:
        self._leader = leader
        self._allowed = allowed
        self._fewest_tasks = 1 << 62

    def look(self) -> Excess | None:
        """End a fork bomb if there is one. Takes microseconds when there is none."""
        tasks = machine_tasks()
        self._fewest_tasks = min(self._fewest_tasks, tasks)
        if tasks - self._fewest_tasks <= self._allowed or not _is_first_process(self._leader):
            return None
        count = len(_pids(f"/proc/{self._leader}/root/proc"))
        if count <= self._allowed:
            self._fewest_tasks = tasks
            return None
        newest = list(self._newest_members())
        if not newest:
            return None
        group, share = Counter(one.group for one in newest).most_common(1)[0]
        suspect = next(one.pid for one in newest if one.group == group)
        note = f"{count} processes in the sandbox, {self._allowed} are allowed"
        excess = Excess("process_limit", command_of(suspect), suspect, note)
        with suppress(OSError):
            if share < len(newest) // 4:
                os.kill(self._leader, signal.SIGKILL)
            else:
                os.killpg(group, signal.SIGKILL)
        return excess

    def _newest_members(self) -> Iterator[Member]:
        namespace = os.readlink(f"/proc/{self._leader}/ns/pid")
        for pid in sorted(_pids("/proc"))[-_SAMPLE:]:
            with suppress(OSError):  # it has ended, or is another user's
                found = member(pid)
                if found is not None and os.readlink(f"/proc/{pid}/ns/pid") == namespace:
                    yield found


def _pids(proc: str) -> list[int]:
    try:
        return [int(name) for name in os.listdir(proc) if name.isdigit()]
    except OSError:
        return []


def _is_first_process(pid: int) -> bool:
    """True if a process is process 1 of a namespace of its own, so that its /proc shows the sandbox alone."""
    for line in read_file(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"NSpid:"):
            return line.split()[-1] == b"1" and len(line.split()) > 2
    return False
