"""The short names of tasks: beginnings of their ids."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from artoo.contracts.errors import ConfigurationError

SHORTEST = 13
"""Characters of an id that are shown at least: ids begin with the time in milliseconds, and these are all of it.
Were they fewer, what was printed for one task would soon begin the names of later ones as well."""


def short_name(task_id: str, among: Collection[str]) -> str:
    """Return the shortest beginning of an id that no other of these ids has."""
    others = [other for other in among if other != task_id]
    for length in range(SHORTEST, len(task_id)):
        if not any(other.startswith(task_id[:length]) for other in others):
            return task_id[:length]
    return task_id


def named(beginning: str, known: Sequence[str], nothing: str, where: str) -> str:
    """Return the one id that begins so. Raises ConfigurationError when there is none (`nothing`) or more than one.

    `where` says how to see which there are.
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
