"""Measure memory, open files and written bytes of a sandbox's processes from /proc, and sizes of directories.

A deleted file that is still open, or a `memfd`, is found in the table of open files of the process that holds it. A
file that is mapped and no longer open counts as memory of the process that maps it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from artoo.sandbox.supervisor.processes import MARK, below, processes, read_file

_SOCKET_BYTES = 512 * 1024
_PIPE_BYTES = 8 * 1024
"""The maximum number of unread bytes in a socket (two default buffers). It is also that in a pipe beyond the user's
share of pipe memory."""
_MOST_DESCRIPTORS = 16_384
"""The maximum number of descriptors that one measurement reads. Each further descriptor counts as a socket with the
maximum number of bytes. A measurement must end before a process can allocate the next gigabyte. For comparison, a
build with hundreds of processes has some thousand descriptors."""
_IN_MEMORY = ("/memfd:", "/dev/zero", "/SYSV", "/dev/shm/")


class Member(NamedTuple):
    """A process of a sandbox, with process ids as seen from outside. `threads`: the number of threads, at least
    1."""

    pid: int
    parent: int
    group: int
    session: int
    threads: int


@dataclass(slots=True)
class Held:
    """The memory and disk space that the open files of processes hold.

    Sizes are in bytes, by device and inode, so that a file that is open several times counts once. `watchers`:
    inotify instances by pid.
    """

    memory: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    disk: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    buffers: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    watchers: dict[int, int] = field(default_factory=dict[int, int])
    descriptors: int = 0

    @property
    def disk_bytes(self) -> int:
        """Return the bytes of deleted files on disk that are still open."""
        return sum(self.disk.values())

    def inotify_instances(self, members: Iterable[Member]) -> int:
        """Return the number of inotify instances of these processes. Instances that a child inherited from its
        parent count once."""
        inherited = ((self.watchers.get(one.pid, 0), self.watchers.get(one.parent, 0)) for one in members)
        return sum(max(0, own - of_parent) for own, of_parent in inherited)


def members_below(leader: int, proc: str = "/proc") -> list[Member]:
    """Return the descendants of the process `leader`."""
    stats = processes(proc)
    found = below({leader}, {pid: int(fields[1]) for pid, fields in stats.items()})
    return [Member(pid, *map(int, (*stats[pid][1:4], stats[pid][17]))) for pid in found]


def memory_of(members: Iterable[Member], held: Held, *, fair: bool = False) -> int:
    """Return the number of bytes in memory that processes and their open files use. Pages of files on disk do not
    count.

    Pages that forked processes share count in each of them. `fair`: true to divide shared pages among the
    processes, which is slow for large processes. A file in memory that is open and mapped would be in both counts,
    so only the larger count is used.
    """
    own = shared = 0
    for one in members:
        table = _table(f"/proc/{one.pid}/smaps_rollup") if fair else {}
        if table:
            own += table.get(b"Pss_Anon", 0) + table.get(b"SwapPss", 0)
            shared += table.get(b"Pss_Shmem", 0)
        else:
            table = _table(f"/proc/{one.pid}/status")
            own += sum(table.get(name, 0) for name in (b"RssAnon", b"VmSwap", b"VmPTE"))
            shared += table.get(b"RssShmem", 0)
    buffers = sum(held.buffers.values()) + max(0, held.descriptors - _MOST_DESCRIPTORS) * _SOCKET_BYTES
    return own * 1024 + max(shared * 1024, sum(held.memory.values())) + buffers


def held_by(members: Iterable[Member]) -> Held:
    """Measure the memory and disk space that the open files of processes hold."""
    held = Held()
    for one in members:
        try:
            numbers = os.listdir(f"/proc/{one.pid}/fd")
        except OSError:  # the process has ended
            continue
        held.descriptors += len(numbers)
        for number in numbers if held.descriptors <= _MOST_DESCRIPTORS else ():
            with suppress(OSError):  # it was closed meanwhile, or its file system no longer exists
                _add(f"/proc/{one.pid}/fd/{number}", one.pid, held)
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


def written_bytes(pid: int) -> int:
    """Return the number of bytes that a process and its ended children have written so far. Return 0 if the process
    has ended."""
    table = _table(f"/proc/{pid}/io")
    return table.get(b"wchar", 0) + table.get(b"write_bytes", 0)


def command_of(pid: int) -> str | None:
    """Return the id of the command to which a process belongs. Return None if the environment of the process
    contains no mark."""
    for variable in read_file(f"/proc/{pid}/environ").split(b"\0"):
        name, _, value = variable.partition(b"=")
        if name == MARK:
            return os.fsdecode(value)
    return None


def disk_usage(directories: Iterable[Path], stop_bytes: int, stop_paths: int) -> tuple[int, int]:
    """Count the bytes on disk and the paths below directories. The count stops when either limit is exceeded.

    All names of one whiteout count once, because overlayfs hard-links the same whiteout for each file that is
    removed. Otherwise a command that deletes files would seem to create them.
    """
    total, paths = 0, 0
    whiteouts = set[tuple[int, int]]()
    todo = [os.fsencode(directory) for directory in directories]
    while todo and total <= stop_bytes and paths <= stop_paths:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    paths += 1
                    # An entry that vanishes after the listing must not end the count of the other entries.
                    with suppress(FileNotFoundError):
                        found = entry.stat(follow_symlinks=False)
                        total += found.st_blocks * 512
                        if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
                            paths -= (found.st_dev, found.st_ino) in whiteouts
                            whiteouts.add((found.st_dev, found.st_ino))
                        if entry.is_dir(follow_symlinks=False):
                            todo.append(entry.path)
        except OSError:  # the directory was just removed, or a command has made it unreadable
            continue
    return total, paths


def _table(path: str) -> dict[bytes, int]:
    lines = (line.split() for line in read_file(path).splitlines())
    return {words[0].rstrip(b":"): int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}
