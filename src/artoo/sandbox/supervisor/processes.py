"""Find processes as /proc shows them. A part of the supervisor's program: standard library only."""

from __future__ import annotations

import os

MARK = b"ARTOO_PROCESS"
"""A variable by which processes of a command are known that left its session. It is a convenience, not a boundary:
a process can remove it, and then it ends with the sandbox at the latest."""


def members(leader: int, mark: bytes) -> set[int]:
    """Return the living processes of a command: its session, what descends from that, and what carries its mark.

    Only descendants of this process count: without a process namespace, another task's commands carry marks too.
    """
    stats = living()
    parents = {pid: int(fields[1]) for pid, fields in stats.items()}
    wanted = MARK + b"=" + mark
    members = {
        pid
        for pid in below({os.getpid()}, parents)
        if (leader and stats[pid][3] == b"%d" % leader) or wanted in read_file(f"/proc/{pid}/environ").split(b"\0")
    }
    return members | below(members, parents)


def descendants() -> set[int]:
    """Return the living processes below this one."""
    return below({os.getpid()}, {pid: int(fields[1]) for pid, fields in living().items()})


def living() -> dict[int, list[bytes]]:
    """Return the processes that have not ended, without the first one."""
    return {pid: fields for pid, fields in processes().items() if pid > 1 and fields[0] not in (b"Z", b"X")}


def processes(proc: str = "/proc") -> dict[int, list[bytes]]:
    """Return the fields of /proc/PID/stat from the state on, by process id; nothing where there is no /proc."""
    try:
        names = os.listdir(proc)
    except OSError:  # macOS
        return {}
    stats = ((name, read_file(f"{proc}/{name}/stat")) for name in names if name.isdigit())
    return {int(name): stat.rpartition(b")")[2].split() for name, stat in stats if stat}


def below(above: set[int], parents: dict[int, int]) -> set[int]:
    """Return the descendants of some processes."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    waiting = list(above)
    while waiting:
        new = children.pop(waiting.pop(), [])
        found.update(new)
        waiting += new
    return found


def kill(pid: int, signal: int) -> None:
    """Send a signal, unless the process has ended."""
    try:
        os.kill(pid, signal)
    except (ProcessLookupError, PermissionError):
        return


def name_of(pid: int) -> bytes:
    """Return what a process is, for a reader: its command line, shortened, and its process id."""
    words = read_file(f"/proc/{pid}/cmdline").rstrip(b"\0").replace(b"\0", b" ")
    words = words or read_file(f"/proc/{pid}/comm").strip()
    return b"%s (pid %d)" % (words[:120], pid)


def read_file(path: str) -> bytes:
    """Return the content of a file of /proc; empty when its process is gone or hides it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return read_all(descriptor)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def read_all(descriptor: int) -> bytes:
    """Read a descriptor to its end."""
    pieces: list[bytes] = []
    while piece := os.read(descriptor, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)
