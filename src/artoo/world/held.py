"""What a running command holds that no directory and no process size shows: files without a name, shared memory,
buffers of the kernel.

A file that was removed while it is open, a `memfd`, shared memory that nobody has mapped in full: each is found by
its holder, in the table of open files or in the map of the address space. What neither shows (a file of which only
one page is mapped, a descriptor that is on its way through a socket) leaves a trace there, and makes free space go:
`Held.trace` says that such a thing exists, and the watch then believes the file system (see `watch`).

A look must end before the command has taken the next gigabyte: so it goes through a bounded number of descriptors
and of maps. Each descriptor beyond counts as what it could hold most, and maps beyond as a trace.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

_SOCKET_BYTES = 512 * 1024
_PIPE_BYTES = 8 * 1024
"""What one can hold at most without being read: two default buffers of a socket; a pipe beyond a user's share."""
_MOST_DESCRIPTORS, _MOST_MAPS = 16_384, 32 << 20
"""What one look goes through: descriptors of all processes, bytes of all maps. Builds with hundreds of processes
hold some thousands."""
_IN_MEMORY = ("/memfd:", "/dev/zero", "/SYSV", "/dev/shm/")


@dataclass(slots=True)
class Held:
    """Sizes by device and inode, so that what several processes hold is counted once. In bytes."""

    memory: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    disk: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    buffers: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    trace: bool = False
    descriptors: int = 0
    maps: int = 0

    @property
    def memory_bytes(self) -> int:
        beyond = max(0, self.descriptors - _MOST_DESCRIPTORS) * _SOCKET_BYTES
        return sum(self.memory.values()) + sum(self.buffers.values()) + beyond

    @property
    def disk_bytes(self) -> int:
        return sum(self.disk.values())

    def add(self, identity: tuple[int, int], size: int, name: str) -> None:
        kind = self.memory if name.startswith(_IN_MEMORY) else self.disk
        kind[identity] = max(size, kind.get(identity, 0))


def held_by(members: Iterable[int], proc: Path = Path("/proc")) -> Held:
    """What these processes hold. One that hides its tables counts as a trace."""
    held = Held()
    for pid in members:
        place = f"{proc}/{pid}"
        try:
            _open_files(place, held)
            _mapped(place, held)
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        except OSError:  # it hides them, or what it holds lies on a server that is gone
            held.trace = True
    return held


def _open_files(place: str, held: Held) -> None:
    numbers: list[str] = []
    number_of = os.stat(f"{place}/fd").st_size  # since Linux 6.2; before it is 0, and they are listed
    if held.descriptors + number_of <= _MOST_DESCRIPTORS:
        numbers = os.listdir(f"{place}/fd")
        number_of = len(numbers)
    held.descriptors += number_of
    if held.descriptors > _MOST_DESCRIPTORS:
        held.trace = True
        return
    for number in numbers:
        link = f"{place}/fd/{number}"
        try:
            seen = os.stat(link)
            identity = (seen.st_dev, seen.st_ino)
            if stat.S_ISREG(seen.st_mode):
                if seen.st_nlink == 0:
                    held.add(identity, seen.st_blocks * 512, os.readlink(link))
            elif stat.S_ISSOCK(seen.st_mode):
                held.buffers[identity] = _SOCKET_BYTES
                held.trace |= _sends_descriptors(f"{place}/fdinfo/{number}")
            elif stat.S_ISFIFO(seen.st_mode):
                held.buffers[identity] = _PIPE_BYTES
        except FileNotFoundError:  # closed meanwhile
            continue
        except OSError:  # of another user's file system, or a server that is gone
            held.trace = True


def _sends_descriptors(path: str) -> bool:
    with open(path, "rb") as file:
        return any(line.startswith(b"scm_fds:") and line.split()[1] != b"0" for line in file)


def _mapped(place: str, held: Held) -> None:
    """Mapped files without a name: their real size where we may ask for it, else as far as they are mapped."""
    if held.maps > _MOST_MAPS:
        held.trace = True
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
        except OSError:  # we may not ask, or its file system is gone
            held.trace = True
        held.add(identity, size, os.fsdecode(name))
