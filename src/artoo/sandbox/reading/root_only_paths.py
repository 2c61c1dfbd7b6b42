"""What root could read and nobody else: closed to commands, which would otherwise see with root's eyes.

A plain user's commands are held by the kernel; root's pass every permission. What the machine's other users are
kept from (`/etc/shadow`, host keys, a database's directory, the homes of others) is therefore looked up and closed.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from artoo.sandbox.reading.path_set import inside

_PLACES = ("/etc", "/var", "/home", "/root", "/srv", "/opt", "/mnt", "/media", "/usr/local", "/boot")
_MOST_ENTRIES = 60_000
_KEPT_SECONDS = 120.0


def restricted() -> tuple[str, ...]:
    """Files and directories that only their owner or group may read, outermost only. Nothing for a plain user.

    A directory that holds nothing else is named in their place: each place costs every command some time. What was
    found holds for two minutes, without what has gone since: nothing can be laid over it. Of a machine with very
    many entries the shallow ones are looked at.
    """
    if os.geteuid() != 0:
        return ()
    return tuple(place for place in _found(int(time.monotonic() / _KEPT_SECONDS)) if os.path.lexists(place))


def is_restricted(path: str) -> bool:
    """Whether a real path is one of those, looked up for itself."""
    if os.geteuid() != 0 or not any(inside(path, place) for place in _PLACES):
        return False
    return any(_is_closed(one) for one in (path, *map(str, Path(path).parents)))


def may_everybody_read(path: str) -> bool:
    """Whether any user of this machine may read what is there, and nobody but root may change it."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    return _open_to_all(status.st_mode) and status.st_uid == 0


@lru_cache(maxsize=1)
def _found(turn: int) -> tuple[str, ...]:
    return tuple(restricted_in(_PLACES))


def restricted_in(places: tuple[str, ...]) -> Iterator[str]:
    """As `restricted`, of these places, as it is now. Blocking."""
    seen = 0
    waiting = deque(places)
    open_directories: list[str] = []
    entries: dict[str, int] = {}
    closed: dict[str, list[str]] = {}
    while waiting and seen < _MOST_ENTRIES:
        directory = waiting.popleft()
        try:
            if not _open_to_all(os.lstat(directory).st_mode):
                closed.setdefault(os.path.dirname(directory), []).append(directory)
                continue
            listed = list(os.scandir(directory))
        except OSError:
            continue
        open_directories.append(directory)
        entries[directory] = len(listed)
        seen += len(listed)
        for entry in listed:
            status = _status(entry)
            if status is None:
                continue
            if stat.S_ISDIR(status.st_mode):
                waiting.append(entry.path)
            elif not _open_to_all(status.st_mode):
                closed.setdefault(directory, []).append(entry.path)
    for directory in reversed(open_directories):  # what holds nothing else is one place, not hundreds
        if len(closed.get(directory, ())) == entries[directory] > 0:
            del closed[directory]
            closed.setdefault(os.path.dirname(directory), []).append(directory)
    for found in closed.values():
        yield from found


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    """That of a file or directory; what is no plain thing has nothing to be read."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) else None


def _is_closed(path: str) -> bool:
    try:
        status = os.lstat(path)
    except OSError:  # nothing there
        return False
    plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return plain and not _open_to_all(status.st_mode)


def _open_to_all(mode: int) -> bool:
    if stat.S_ISDIR(mode):
        return bool(mode & stat.S_IXOTH)
    return bool(mode & stat.S_IROTH)
