"""Define the surroundings of a request, in a few lines that a small model can read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from artoo.contracts.settling import ChangeClass
from artoo.contracts.steering import Heard


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The surroundings of a request.

    `listing`: the project as it is now, with heads of the files that are named. `heads`: these alone.
    `named`: the same, with what is to be said of them; empty where the request names none, or one that cannot
    be read. `whole`: the paths of files that are shown whole, as their heads have them. `guide`: standing
    instructions of the person and of the project, each with whose they are. `missing`: what has the form of a
    file's path in the request and is nowhere. `changed`: what was created, changed, moved and deleted in the
    workspace, a line a kind; empty where it is not shown. `earlier`: the same of what the task had changed
    before a subtask began. `classes`: what all these changes mean for the person, the most dangerous first.
    """

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
    """A read-only view of the project root, bounded in time and size."""

    async def look(self, request: str) -> Surroundings:
        """Return the surroundings that matter for `request`. Never raises."""
        ...


class TurnSource(SurroundingsSource, Protocol):
    """The surroundings of one subtask, before each of its turns."""

    async def news(self) -> tuple[str, ...]:
        """Show the user's files as they are now; return what happened outside the subtask's calls. Never raises."""
        ...


class ExecutorsView(TurnSource, Protocol):
    """The surroundings of an executor, with the messages that reached it between two turns."""

    async def heard(self, arrived: Callable[[], Awaitable[tuple[Heard, ...]]]) -> tuple[Heard, ...]:
        """Put what arrived on the stream and return it; a replay returns what arrived then."""
        ...
