"""Measures what processes hold that no directory and no process size shows: files without a name, kernel buffers.

A file that was removed while it is open, a `memfd` and shared memory are found through the process that holds them:
in its table of open files, or in the map of its address space. Neither table shows the size of a file of which only
one page is mapped, nor a descriptor that is on its way through a socket: `Held.hides` says that there is such a
thing. The monitor then looks at what the machine has lost.

A look must end before the processes can take the next gigabyte, so it reads a bounded number of descriptors and of
maps. Each further descriptor counts as the most that it could hold, and further maps as hidden.
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
_MOST_DESCRIPTORS, _MOST_MAPS = 16_384, 32 << 20
"""How much one look reads: descriptors of all processes, bytes of all maps. Builds with hundreds of processes have
some thousands of descriptors."""
_IN_MEMORY = ("/memfd:", "/dev/zero", "/SYSV", "/dev/shm/")


@dataclass(slots=True)
class Held:
    """What processes hold. Sizes in bytes by device and inode, so that a shared file counts once."""

    memory: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    disk: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    buffers: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    watchers: dict[int, int] = field(default_factory=dict[int, int])
    hides: bool = False
    descriptors: int = 0
    maps: int = 0

    @property
    def memory_bytes(self) -> int:
        """Return the bytes in memory."""
        beyond = max(0, self.descriptors - _MOST_DESCRIPTORS) * _SOCKET_BYTES
        return sum(self.memory.values()) + sum(self.buffers.values()) + beyond

    @property
    def disk_bytes(self) -> int:
        """Return the bytes on disk."""
        return sum(self.disk.values())

    def add(self, identity: tuple[int, int], size: int, name: str) -> None:
        """Add a file without a name. `name` is the one it had."""
        kind = self.memory if name.startswith(_IN_MEMORY) else self.disk
        kind[identity] = max(size, kind.get(identity, 0))

    def inotify_instances(self, members: Iterable[Member]) -> int:
        """Return how many inotify instances there are. A child inherits those of its parent."""
        inherited = ((self.watchers.get(one.pid, 0), self.watchers.get(one.parent, 0)) for one in members)
        return sum(max(0, own - of_parent) for own, of_parent in inherited)


def held_by(pids: Iterable[int], proc: str = "/proc") -> Held:
    """Measure what processes hold. A process that hides its tables counts as hiding something."""
    held = Held()
    for pid in pids:
        try:
            _read_open_files(f"{proc}/{pid}", pid, held)
            _read_maps(f"{proc}/{pid}", held)
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        except OSError:  # it hides them, or what it holds lies on a server that is gone
            held.hides = True
    return held


def _read_open_files(place: str, pid: int, held: Held) -> None:
    numbers: list[str] = []
    count = os.stat(f"{place}/fd").st_size  # since Linux 6.2; before it is 0, and they are listed
    if held.descriptors + count <= _MOST_DESCRIPTORS:
        numbers = os.listdir(f"{place}/fd")
        count = len(numbers)
    held.descriptors += count
    if held.descriptors > _MOST_DESCRIPTORS:
        held.hides = True
        return
    for number in numbers:
        try:
            _read_descriptor(place, number, pid, held)
        except FileNotFoundError:  # closed meanwhile
            continue
        except OSError:  # of another user's file system, or a server that is gone
            held.hides = True


def _read_descriptor(place: str, number: str, pid: int, held: Held) -> None:
    link = f"{place}/fd/{number}"
    seen = os.stat(link)
    identity = (seen.st_dev, seen.st_ino)
    if stat.S_ISREG(seen.st_mode):
        if seen.st_nlink == 0:
            held.add(identity, seen.st_blocks * 512, os.readlink(link))
    elif stat.S_ISSOCK(seen.st_mode):
        held.buffers[identity] = _SOCKET_BYTES
        held.hides |= _sends_descriptors(f"{place}/fdinfo/{number}")
    elif stat.S_ISFIFO(seen.st_mode):
        held.buffers[identity] = _PIPE_BYTES
    elif stat.S_IFMT(seen.st_mode) == 0 and os.readlink(link) == "anon_inode:inotify":
        held.watchers[pid] = held.watchers.get(pid, 0) + 1


def _sends_descriptors(path: str) -> bool:
    with open(path, "rb") as file:
        return any(line.startswith(b"scm_fds:") and line.split()[1] != b"0" for line in file)


def _read_maps(place: str, held: Held) -> None:
    """Find mapped files without a name: their real size where it may be read, else as far as they are mapped."""
    if held.maps > _MOST_MAPS:
        held.hides = True
        return
    with open(f"{place}/maps", "rb") as file:
        text = file.read()
    held.maps += len(text)
    if b"(deleted)" not in text and b"/SYSV" not in text:
        return
    for line in text.splitlines():
        if not line.endswith(b"(deleted)"):
            continue
        span, _, offset, device, inode, name = line.split(None, 5)
        major, minor = (int(part, 16) for part in device.split(b":"))
        start, end = (int(part, 16) for part in span.split(b"-"))
        identity, size = (os.makedev(major, minor), int(inode)), int(offset, 16) + end - start
        try:
            seen = os.stat(f"{place}/map_files/{start:x}-{end:x}")
            identity, size = (seen.st_dev, seen.st_ino), seen.st_blocks * 512
        except FileNotFoundError:
            continue
        except OSError:  # a plain user may not ask, or its file system is gone
            held.hides = True
        held.add(identity, size, os.fsdecode(name))
