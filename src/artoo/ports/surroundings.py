"""The interface to the project's file listing for prompts, with changes before each turn.

For small models it is a few lines.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from artoo.contracts.settling import ChangeClass
from artoo.contracts.steering import Heard


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The surroundings of a request.

    `listing` describes the present project, with heads of the files that the request names. `heads` are these
    heads without the rest. `named` are the heads with remarks about the files; it is empty if the request names
    no file, or an unreadable one. `whole` are the paths of files that are shown whole. `guide` has the standing
    instructions of the user and of the project, each with its source. `missing` are texts in the request that
    look like paths of files but do not exist. `changed` lists the paths that were created, changed, moved and
    deleted in the workspace, one line for each kind; it may be empty. `earlier` lists those that the task had
    changed before a subtask began. `classes` are the classes of all these changes, most dangerous first."""

    listing: str = ""
    heads: str = ""
    named: str = ""
    whole: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    guide: str = ""
    changed: str = ""
    earlier: str = ""
    classes: tuple[ChangeClass, ...] = ()


class SurroundingsSource(Protocol):
    """Read-only access to the project root, with limits for time and size."""

    async def look(self, request: str) -> Surroundings:
        """Return the surroundings that matter for `request`. Never raises."""
        ...


class TurnSource(SurroundingsSource, Protocol):
    """The surroundings of one subtask, before each of its turns."""

    async def news(self) -> tuple[str, ...]:
        """Update the workspace to the user's files; return notes about changes by others than the subtask. Never
        raises."""
        ...


class ExecutorsView(TurnSource, Protocol):
    """The surroundings of an executor, with the messages that it received between two turns."""

    async def heard(self, arrived: Callable[[], Awaitable[tuple[Heard, ...]]]) -> tuple[Heard, ...]:
        """Record the arrived messages on the stream and return them; a replay returns the recorded messages."""
        ...
