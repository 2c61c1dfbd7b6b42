"""What has become of what earlier turns of a conversation changed, as it is when the next request is made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from artoo.contracts.request import Turn
from artoo.contracts.settling import implied
from artoo.runtime.changes.settlement_history import SettledBooks
from artoo.tasklog.reader import summary_of

MOST_PATHS = 200
"""Paths of one turn that are handed on; a prompt lists fewer of them."""


def with_what_became(home: Path, history: Sequence[Turn], project: Path) -> tuple[Turn, ...]:
    """The turns, each with what has become of its changes: paths that still wait for the person, and what was
    applied, dropped or put back, as named in the project. Blocking.

    All this may change at any time between two requests, so it is looked up, and kept in no session.
    """
    if not any(turn.task_id for turn in history):
        return tuple(history)
    books = SettledBooks.of(home)
    return tuple(_looked_up(home, books, turn, f"{project}/") for turn in history)


def _looked_up(home: Path, books: SettledBooks, turn: Turn, project: str) -> Turn:
    told = summary_of(home, turn.task_id) if turn.task_id is not None else None
    if told is None or told.result is None:  # it has not ended, or its log is gone
        return turn
    changes = told.result.changes
    after = books.afterwards(told.task_id, changes)
    known = implied(changes.changes)
    settled = known | {path for one in after.became if one.act == "applied" for path in one.paths}
    left = [one.path for one in changes.changes if one.path not in settled] if after.waits is not None else []
    became = tuple(
        (one.act, _named([path for path in one.paths if path not in known], project)) for one in after.became
    )
    return turn.model_copy(update={"waits": _named(left, project), "became": became})


def _named(paths: Sequence[str], project: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(project) for path in paths[:MOST_PATHS])
