"""Measures what processes hold that no directory and no process size shows: files without a name, kernel buffers.

A file that was removed while it is open, or a `memfd`, is found in the table of open files of the process that
holds it. What is mapped and no longer open counts as memory of the process (`process_tree.Memory`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field

from artoo.sandbox.limits.process_tree import Member

_SOCKET_BYTES = 512 * 1024
_PIPE_BYTES = 8 * 1024
"""The most that one can hold without being read: two default buffers of a socket; a pipe beyond a user's share."""
_MOST_DESCRIPTORS = 16_384
"""How many one look reads; each further one counts as a socket. A look must end before a process can take the next
gigabyte. Builds with hundreds of processes have some thousands."""
_IN_MEMORY = ("/memfd:", "/dev/zero", "/SYSV", "/dev/shm/")


@dataclass(slots=True)
class Held:
    """What processes hold. Sizes in bytes by device and inode, so that a shared file counts once.

    `watchers`: inotify instances by pid.
    """

    memory: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    disk: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    buffers: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    watchers: dict[int, int] = field(default_factory=dict[int, int])
    descriptors: int = 0

    @property
    def file_bytes(self) -> int:
        """Return the bytes of files in memory."""
        return sum(self.memory.values())

    @property
    def buffer_bytes(self) -> int:
        """Return the most that sockets and pipes may hold."""
        return sum(self.buffers.values()) + max(0, self.descriptors - _MOST_DESCRIPTORS) * _SOCKET_BYTES

    @property
    def disk_bytes(self) -> int:
        """Return the bytes of removed files on disk."""
        return sum(self.disk.values())

    def inotify_instances(self, members: Iterable[Member]) -> int:
        """Return how many inotify instances there are. A child inherits those of its parent."""
        inherited = ((self.watchers.get(one.pid, 0), self.watchers.get(one.parent, 0)) for one in members)
        return sum(max(0, own - of_parent) for own, of_parent in inherited)


def held_by(pids: Iterable[int], proc: str = "/proc") -> Held:
    """Measure what processes hold."""
    held = Held()
    for pid in pids:
        try:
            numbers = os.listdir(f"{proc}/{pid}/fd")
        except OSError:  # it has ended
            continue
        held.descriptors += len(numbers)
        if held.descriptors <= _MOST_DESCRIPTORS:
            for number in numbers:
                try:
                    _add(f"{proc}/{pid}/fd/{number}", pid, held)
                except OSError:  # closed meanwhile, or its file system is gone
                    continue
    return held


def _add(link: str, pid: int, held: Held) -> None:
    found = os.stat(link)
    identity = (found.st_dev, found.st_ino)
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
        kind = held.memory if os.readlink(link).startswith(_IN_MEMORY) else held.disk
        kind[identity] = found.st_blocks * 512
    elif stat.S_ISSOCK(found.st_mode):
        held.buffers[identity] = _SOCKET_BYTES
    elif stat.S_ISFIFO(found.st_mode):
        held.buffers[identity] = _PIPE_BYTES
    elif stat.S_IFMT(found.st_mode) == 0 and os.readlink(link) == "anon_inode:inotify":
        held.watchers[pid] = held.watchers.get(pid, 0) + 1
