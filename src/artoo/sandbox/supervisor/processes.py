"""List, find and kill processes by /proc, inside the supervisor.

It uses only the standard library.
"""

from __future__ import annotations

import os

MARK = b"ARTOO_PROCESS"
"""An environment variable by which the processes of a command are recognised even if they left its session. It is
no security boundary, because a process can remove it. A process without it ends at the latest together with the
sandbox."""


def members(leader: int, mark: bytes) -> set[int]:
    """Return the running processes of a command. These are its session, the processes with its mark, and their
    descendants.

    Only descendants of this process count, because the commands of other tasks have marks too if there is no
    process namespace.
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
    """Return the running descendants of this process."""
    return below({os.getpid()}, {pid: int(fields[1]) for pid, fields in living().items()})


def living() -> dict[int, list[bytes]]:
    """Return the processes that have not ended, except process 1."""
    return {pid: fields for pid, fields in processes().items() if pid > 1 and fields[0] not in (b"Z", b"X")}


def processes(proc: str = "/proc") -> dict[int, list[bytes]]:
    """Return the fields of /proc/PID/stat, from the state on, by process id. The result is empty if there is no
    /proc."""
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
    """Return a readable name of a process, which consists of its shortened command line and its process id."""
    words = read_file(f"/proc/{pid}/cmdline").rstrip(b"\0").replace(b"\0", b" ")
    words = words or read_file(f"/proc/{pid}/comm").strip()
    return b"%s (pid %d)" % (words[:120], pid)


def read_file(path: str) -> bytes:
    """Return the content of a file in /proc; empty if its process has ended or the file cannot be read."""
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
