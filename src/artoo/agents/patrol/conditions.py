"""When an item of a patrol is due, as data: `every: 6h`, `when: file_exists reports/*.csv`.

Of the closed set of checks, those that need no task's output can stand here: `file_exists`, `file_matches` and
`command_succeeds`; besides, `file_changed`, `mail` and `tasks pending`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from artoo.contracts.criteria import CommandSucceeds, FileMatches

SHORTEST_EVERY = timedelta(minutes=1)
LONGEST_EVERY = timedelta(days=366)

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_EVERY = re.compile(r"(\d{1,6})\s*([mhd])\b[.,;:]?\s*")
_PATHS = {"file_exists", "file_changed"}
_KNOWN = (
    "file_exists PATH, file_changed PATH, file_matches PATH REGEX, command_succeeds COMMAND, mail, tasks pending"
)


@dataclass(frozen=True, slots=True)
class Every:
    """Due again once this much time has passed since it was last done."""

    interval: timedelta


@dataclass(frozen=True, slots=True)
class FilesThere:
    """Due when files that match `pattern` (a path; `*` and `?` work) are there and were not before, or differ."""

    pattern: str


@dataclass(frozen=True, slots=True)
class FilesChanged:
    """Due when files that match `pattern` differ from what they were; the first look only notes."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Holds:
    """Due when a check begins to hold, and again when it holds after having failed."""

    check: FileMatches | CommandSucceeds


@dataclass(frozen=True, slots=True)
class NewMail:
    """Due when a letter has come since the last time; the first look only notes."""


@dataclass(frozen=True, slots=True)
class TasksPending:
    """Due when a task has been queued for the agent since the last time; the first look only notes."""


When = FilesThere | FilesChanged | Holds | NewMail | TasksPending


class ConditionProblem(ValueError):
    """A condition cannot be read; the text says why and what can stand there."""


def read_every(text: str) -> tuple[Every, str]:
    """The condition at the start of `text` and what follows it. Raises ConditionProblem."""
    found = _EVERY.match(text)
    if found is None:
        raise ConditionProblem(
            f"`every: {_short(text)}` is no time: write a number and m, h or d, such as 30m or 1d"
        )
    interval = timedelta(**{_UNITS[found[2]]: int(found[1])})
    if not SHORTEST_EVERY <= interval <= LONGEST_EVERY:
        raise ConditionProblem(f"`every: {found[0].strip()}` must be from 1m to 366d")
    return Every(interval), text[found.end() :]


def read_when(text: str) -> tuple[When, str]:
    """The condition at the start of `text` and what follows it. Raises ConditionProblem."""
    name, _, rest = text.strip().partition(" ")
    name, rest = name.rstrip(",.;:"), rest.strip()
    if name in _PATHS:
        path, rest = _first_word(rest, name)
        if "**" in path:
            raise ConditionProblem(
                f"`{path}` would walk a whole tree at each pulse: name the directories, with `*`"
            )
        return (FilesThere(path) if name == "file_exists" else FilesChanged(path)), rest
    if name == "file_matches":
        path, regex = _first_word(rest, name)
        return Holds(FileMatches(path=path, regex=_needed(regex, name, "a regular expression"))), ""
    if name == "command_succeeds":
        return Holds(CommandSucceeds(command=_needed(_bare(rest), name, "a command"))), ""
    if name == "mail":
        return NewMail(), rest
    if name == "tasks" and rest.partition(" ")[0].rstrip(",.;:") == "pending":
        return TasksPending(), rest.partition(" ")[2]
    if name in ("tool_succeeded", "output_matches", "output_is_json"):
        raise ConditionProblem(f"`{name}` judges a task's result; before a task there is none. Known: {_KNOWN}")
    raise ConditionProblem(f"`when: {_short(text)}` is no check. Known: {_KNOWN}")


def _first_word(text: str, name: str) -> tuple[str, str]:
    """A path, in quotes or backticks when it has spaces, and the rest."""
    for quote in ('"', "'", "`"):
        if text.startswith(quote) and quote in text[1:]:
            path, _, rest = text[1:].partition(quote)
            return _needed(path, name, "a path"), rest.strip()
    word, _, rest = text.partition(" ")
    return _needed(word.rstrip(",;"), name, "a path"), rest.strip()


def _bare(text: str) -> str:
    """A command without the backticks around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "`" else text


def _needed(text: str, name: str, what: str) -> str:
    if not text.strip():
        raise ConditionProblem(f"`when: {name}` needs {what}")
    return text.strip()


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:59]}…"
