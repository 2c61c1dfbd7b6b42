"""Abbreviate task ids as far as they stay unique, and find a task by the beginning of its id."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from artoo.contracts.errors import ConfigurationError

SHORTEST = 13
"""The minimum number of characters of an id that are shown. They contain its time in milliseconds. With fewer
characters, later tasks would soon have the same beginning."""


def short_name(task_id: str, among: Collection[str]) -> str:
    """Return the shortest beginning of an id that no other id in `among` has."""
    others = [other for other in among if other != task_id]
    for length in range(SHORTEST, len(task_id)):
        if not any(other.startswith(task_id[:length]) for other in others):
            return task_id[:length]
    return task_id


def named(beginning: str, known: Sequence[str], nothing: str, where: str) -> str:
    """Return the only id that begins with `beginning`. Raises ConfigurationError if no id begins with it, or if
    several do.

    `nothing` and `where` are parts of the error text. They say that no id fits, and how to list the tasks.
    """
    if beginning in known:
        return beginning
    found = [task_id for task_id in known if beginning and task_id.startswith(beginning)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise ConfigurationError(f"{nothing} {beginning!r}; {where}")
    shown = ", ".join(short_name(task_id, known) for task_id in found[:5])
    raise ConfigurationError(f"{len(found)} tasks begin with {beginning!r}: {shown}; {where}")
