"""The processes of a command, as /proc shows them to the supervisor. For its program: standard library only."""

from __future__ import annotations

import os

MARK = b"ARTOO_PROCESS"
"""A variable by which processes of a command are known that left its session. It is a convenience, not a boundary:
a process can remove it, and then it ends with the sandbox at the latest."""


def members(leader: int, mark: bytes) -> set[int]:
    """Return the processes of a command: its session, what descends from that, and what carries its mark.

    Only descendants of this process count: without a process namespace, another task's commands carry marks too.
    """
    parents, sessions = processes()
    wanted = MARK + b"=" + mark
    members = {
        pid
        for pid in below({os.getpid()}, parents)
        if (leader and sessions[pid] == leader) or wanted in _read(f"/proc/{pid}/environ").split(b"\0")
    }
    return members | below(members, parents)


def processes() -> tuple[dict[int, int], dict[int, int]]:
    """Return the parent and the session of each living process."""
    parents: dict[int, int] = {}
    sessions: dict[int, int] = {}
    for entry in _listed("/proc"):
        pid = int(entry) if entry.isdigit() else 0
        fields = _read(f"/proc/{entry}/stat").rpartition(b")")[2].split() if pid > 1 else []
        if fields and fields[0] not in (b"Z", b"X"):
            parents[pid], sessions[pid] = int(fields[1]), int(fields[3])
    return parents, sessions


def is_alone() -> bool:
    """Reap the children that ended; return True when none is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def below(above: set[int], parents: dict[int, int]) -> set[int]:
    """Return the descendants of some processes."""
    found = set(above)
    while new := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= new
    return found - above


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []  # macOS


def kill(pid: int, signal: int) -> None:
    try:
        os.kill(pid, signal)
    except (ProcessLookupError, PermissionError):
        return  # it ended meanwhile


def name_of(pid: int) -> bytes:
    """Return what a process is, for a reader: its command line, shortened, and its process id."""
    words = _read(f"/proc/{pid}/cmdline").rstrip(b"\0").replace(b"\0", b" ") or _read(f"/proc/{pid}/comm").strip()
    return b"%s (pid %d)" % (words[:120], pid)


def _read(path: str) -> bytes:
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
    pieces: list[bytes] = []
    while piece := os.read(descriptor, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)
