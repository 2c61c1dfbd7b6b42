"""Parse and evaluate the conditions after `when:` of a patrol item (files, checks, mail, tasks).

The evaluation of a condition returns a short mark, which changes if there is something new.
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

from artoo.agents.storage.database import Database
from artoo.agents.storage.transaction import Reading
from artoo.contracts.criteria import OF_A_RESULT, CommandSucceeds, FileMatches

MOST_FILES = 10_000
"""Maximum number of files matched by one pattern, the first by name. More files are ignored."""
HOLDS = "holds"


class ConditionProblem(ValueError):
    """An invalid condition. The text gives the reason and the allowed forms."""


@dataclass(frozen=True, slots=True)
class FilesThere:
    """A condition that holds if new or changed files match `pattern` (a path with the wildcards `*` and `?`)."""

    pattern: str


@dataclass(frozen=True, slots=True)
class FilesChanged:
    """A condition that holds if files matching `pattern` have changed. The first check only records them."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Holds:
    """A condition that holds when a check succeeds for the first time, and again when it succeeds after failing."""

    check: FileMatches | CommandSucceeds


@dataclass(frozen=True, slots=True)
class NewMail:
    """A condition that holds if a letter has arrived since the last check. The first check only records the
    state."""


@dataclass(frozen=True, slots=True)
class TasksPending:
    """A condition that holds if a task was queued since the last check. The first check only records the state."""


When = FilesThere | FilesChanged | Holds | NewMail | TasksPending

NOTED_FIRST = (FilesChanged, NewMail, TasksPending)
"""Conditions about changes. Their first check only records the current state."""

_FORMS = (
    "file_exists PATH, file_changed PATH, file_matches PATH REGEX, command_succeeds COMMAND, mail, tasks pending"
)


def read_when(text: str) -> tuple[When, str]:
    """Parse the condition at the start of `text`, and return it with the rest. Raises ConditionProblem."""
    name, _, rest = text.strip().partition(" ")
    name, rest = name.rstrip(",.;:"), rest.strip()
    match name:
        case "file_exists" | "file_changed":
            path, rest = _first_word(rest, name)
            if "**" in path:
                raise ConditionProblem(
                    f"`{path}` would walk a whole tree at each pulse: name the directories, with `*`"
                )
            return (FilesThere(path) if name == "file_exists" else FilesChanged(path)), rest
        case "file_matches":
            path, regex = _first_word(rest, name)
            return Holds(FileMatches(path=path, regex=_needed(regex, name, "a regular expression"))), ""
        case "command_succeeds":
            return Holds(CommandSucceeds(command=_needed(_bare(rest), name, "a command"))), ""
        case "mail":
            return NewMail(), rest
        case "tasks" if rest.partition(" ")[0].rstrip(",.;:") == "pending":
            return TasksPending(), rest.partition(" ")[2]
        case _ if name in OF_A_RESULT:
            raise ConditionProblem(f"`{name}` judges a task's result; before a task there is none. Known: {_FORMS}")
        case _:
            raise ConditionProblem(f"`when: {shortened(text)}` is no check. Known: {_FORMS}")


def _first_word(text: str, name: str) -> tuple[str, str]:
    """Parse a path, which is quoted if it contains spaces, and return it with the rest."""
    for quote in ('"', "'", "`"):
        if text.startswith(quote) and quote in text[1:]:
            path, _, rest = text[1:].partition(quote)
            return _needed(path, name, "a path"), rest.strip()
    word, _, rest = text.partition(" ")
    return _needed(word.rstrip(",;"), name, "a path"), rest.strip()


def _bare(text: str) -> str:
    """Return a command without surrounding backticks."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "`" else text


def _needed(text: str, name: str, what: str) -> str:
    if not text.strip():
        raise ConditionProblem(f"`when: {name}` needs {what}")
    return text.strip()


def shortened(text: str) -> str:
    """Return the beginning of a text, for a message about it."""
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:59]}…"


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
