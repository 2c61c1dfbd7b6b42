"""What earlier turns of a conversation have left waiting, as it is when the next request is made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from artoo.contracts.request import Turn
from artoo.contracts.settling import implied
from artoo.runtime.afterwards import SettledBooks
from artoo.tasklog.reader import summary_of

MOST_PATHS = 200
"""Paths of one turn that are handed on; a prompt lists fewer of them."""


def with_what_waits(home: Path, history: Sequence[Turn], project: Path) -> tuple[Turn, ...]:
    """The turns, each with the paths of what it changed that still wait for the person, as named in the project.
    Blocking.

    What was applied, discarded or dropped meanwhile waits no more, so this is looked up, and kept in no session.
    """
    if not any(turn.task_id for turn in history):
        return tuple(history)
    books = SettledBooks.of(home)
    return tuple(turn.model_copy(update={"waits": _waiting(home, books, turn, str(project))}) for turn in history)


def _waiting(home: Path, books: SettledBooks, turn: Turn, project: str) -> tuple[str, ...]:
    if turn.task_id is None or turn.task_id not in books.waiting:
        return ()
    told = summary_of(home, turn.task_id)
    if told is None or told.result is None:  # it has not ended, or its log is gone
        return ()
    changes = told.result.changes
    after = books.afterwards(told.task_id, changes)
    if after.waits is None:
        return ()
    settled = {path for one in after.became if one.act == "applied" for path in one.paths}
    settled |= implied(changes.changes)
    left = (one.path for one in changes.changes if one.path not in settled)
    return tuple(path.removeprefix(f"{project}/") for path in left)[:MOST_PATHS]
