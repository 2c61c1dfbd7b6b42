"""Ends what bubblewrap leaves when it is killed together with artoo while it makes its first process.

That process waits for a word of its parent before anything else, and does not see that there will be none: it runs
nothing and holds its view's places for ever (containers/bubblewrap#633). Who came further finds out (`entry`).
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from artoo.world.entry import NAME
from artoo.world.process import kill_quietly

logger = logging.getLogger(__name__)

_PROGRAM = b"bwrap"


def end_orphans(proc: Path = Path("/proc")) -> list[int]:
    """Ends first processes that hold our entry, are this user's, and have no bubblewrap above them. Returns which.

    Blocking.
    """
    found = [pid for pid in map(int, filter(str.isdigit, os.listdir(proc))) if _is_orphan(proc, pid)]
    for pid in found:
        logger.info("process %s was left by an artoo that was killed: it is ended", pid)
        kill_quietly(pid)
    return found


def _is_orphan(proc: Path, pid: int) -> bool:
    name, parent = _told(proc, pid)
    if name != _PROGRAM or _told(proc, parent)[0] == _PROGRAM:
        return False
    try:
        fields = dict(line.split(b":", 1) for line in (proc / str(pid) / "status").read_bytes().splitlines())
        numbers, users = fields[b"NSpid"].split(), fields[b"Uid"].split()
        if len(numbers) < 2 or numbers[-1] != b"1" or int(users[0]) != os.getuid():
            return False
        opened = proc / str(pid) / "fd"
        return any(os.readlink(one).startswith(f"/memfd:{NAME}") for one in opened.iterdir())
    except (OSError, KeyError, ValueError):  # it is gone, or not ours to look into
        return False


def _told(proc: Path, pid: int) -> tuple[bytes, int]:
    """Name and parent of a process; nothing of one that is gone."""
    try:
        before, _, after = (proc / str(pid) / "stat").read_bytes().rpartition(b")")
    except OSError:
        return b"", 0
    return before.partition(b"(")[2], int(after.split()[1])
