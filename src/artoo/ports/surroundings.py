"""The interface to the project's file listing for prompts, with changes before each turn.

A small model gets only a few lines.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from artoo.contracts.settling import ChangeClass
from artoo.contracts.steering import Heard


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The surroundings of a request, as prompts describe them.

    `listing` describes the present files of the project, and contains the heads (first lines) of the files that the
    request names. `heads` contains only these heads. `named` contains the heads together with remarks about the
    files. It is empty if the request names no file, or names a file that cannot be read. `whole` contains the paths
    of the files that are shown completely. `guide` contains the standing instructions of the user and of the
    project, each with its source. `missing` contains the parts of the request that look like paths, but for which
    no file exists. `changed` lists the paths that were created, changed, moved and deleted in the workspace, with
    one line for each of these kinds of change. It may be empty. `earlier` lists the paths that the task had changed
    before a subtask began. `classes` contains the classes of all these changes, most dangerous class first."""

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
        """Return those surroundings that matter for `request`. Never raises."""
        ...


class TurnSource(SurroundingsSource, Protocol):
    """The source of the surroundings of one subtask, which is read before each of its turns."""

    async def news(self) -> tuple[str, ...]:
        """Update the workspace to the user's present files, and return notes about the changes that were not made
        by the subtask itself. Never raises."""
        ...


class ExecutorsView(TurnSource, Protocol):
    """The surroundings of an executor, together with the messages that the executor received between two turns."""

    async def heard(self, arrived: Callable[[], Awaitable[tuple[Heard, ...]]]) -> tuple[Heard, ...]:
        """Record the arrived messages on the stream and return them. In a replay, the recorded messages are
        returned instead."""
        ...

    async def heard_last(self, arrived: Callable[[], Awaitable[tuple[Heard, ...]]]) -> tuple[Heard, ...]:
        """Do the same after the turn that would end an attempt."""
        ...
