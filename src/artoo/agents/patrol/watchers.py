"""Evaluate a patrol condition for changed files, commands, mail or tasks, with at most 10,000 files.

Each yields a short mark that changes if there is something new.
"""

from __future__ import annotations

import asyncio
import glob
import hashlib
import heapq
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from artoo.agents.patrol.parser import FilesChanged, FilesThere, Holds, NewMail, TasksPending, When
from artoo.agents.storage.database import Database
from artoo.agents.storage.transaction import Reading
from artoo.contracts.criteria import CommandSucceeds, FileMatches

MOST_FILES = 10_000
"""Maximum number of files matched by one pattern, the first by name. More files are ignored."""
HOLDS = "holds"


@dataclass(frozen=True, slots=True)
class Looking:
    """The data sources of an agent's conditions: files below `root`, checks by `holds`, the rest in the database.

    `holds` evaluates a check read-only, with the same code as for criteria.
    """

    agent: str
    root: Path
    database: Database
    holds: Callable[[FileMatches | CommandSucceeds], Awaitable[bool]]

    async def mark(self, when: When) -> str:
        """Return the condition's mark. It is empty if the condition is not met, and changes if there is something
        new.

        Raises ActivityStoreError.
        """
        match when:
            case FilesThere() | FilesChanged():
                return mark_of(await self.files(when))
            case Holds(check):
                return HOLDS if await self.holds(check) else ""
            case NewMail():
                return await self.database.read(self._newest_mail)
            case TasksPending():
                return await self.database.read(self._newest_task)

    async def files(self, when: When) -> Mapping[str, str]:
        """Return the files behind a mark: path → size and time. Empty for other conditions."""
        match when:
            case FilesThere(pattern) | FilesChanged(pattern):
                return await asyncio.to_thread(files_matching, self.root, pattern)
            case _:
                return {}

    def _newest_mail(self, reading: Reading) -> str:
        newest = (
            "SELECT id FROM mails WHERE recipient = ? AND partition <> 'outbox' AND in_reply_to IS NULL"
            " ORDER BY position DESC LIMIT 1"
        )
        return "".join(reading.names(newest, (self.agent,)))

    def _newest_task(self, reading: Reading) -> str:
        newest = "SELECT id FROM tasks WHERE assignee = ? OR assignee IS NULL ORDER BY queue DESC LIMIT 1"
        return "".join(reading.names(newest, (self.agent,)))


def files_matching(root: Path, pattern: str) -> dict[str, str]:
    """Return size and time of every matching file, by path. Blocks."""
    full = os.path.join(glob.escape(str(root)), os.path.expanduser(pattern))  # noqa: PTH111, PTH118
    # The first names are taken, not the first matches, because the order of a directory may change without a change
    # of its files.
    matches = heapq.nsmallest(MOST_FILES, glob.iglob(full))  # noqa: PTH207
    return {path: told for path in matches if (told := _told(path)) is not None}


def mark_of(files: Mapping[str, str]) -> str:
    """Return a digest of the names, sizes and times of all files. Empty if there are no files."""
    seen = [f"{path} {told}" for path, told in files.items()]
    return hashlib.sha256("\0".join(seen).encode("utf-8", "surrogateescape")).hexdigest()[:32] if seen else ""


def _told(path: str) -> str | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return f"{status.st_size} {status.st_mtime_ns}"
