"""A task that was put back is not unknown, and is said to be so only where all of it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.runtime.changes.undo import undone_already
from artoo.runtime.config.model import Config
from artoo.workspace.settlement.history import SettledRecord, note_settled

Line = tuple[str, str, int]


@pytest.mark.parametrize(
    ("lines", "beginning", "found"),
    [
        ([("0198-a", "applied", 0), ("0198-a", "undone", 0)], "0198", "0198-a"),
        ([("0198-a", "undone", 2)], "0198", None),
        ([("0198-a", "undone", 2), ("0198-a", "undone", 0)], "0198-a", "0198-a"),
        ([("0198-a", "undone", 0), ("0198-a", "applied", 0)], "0198-a", None),
        ([("0198-a", "undone", 0), ("0198-b", "undone", 0)], "0198", None),
        ([("0198-a", "undone", 0), ("0198-b", "undone", 0)], "0198-b", "0198-b"),
        ([("0198-a", "discarded", 0)], "0198", None),
    ],
)
def test_put_back_is_what_was_put_back_last_and_whole(
    tmp_path: Path, lines: list[Line], beginning: str, found: str | None
) -> None:
    """Not what left something, nor what was applied after it; the records of these may be forgotten for room."""
    for at, (task_id, what, left) in enumerate(lines):
        line = SettledRecord(at=float(at), task_id=task_id, what=what, by="person", left=left)
        note_settled(tmp_path, line)
    already = undone_already(Config().at_home(tmp_path), (), beginning)
    assert (None if already is None else already.task_id) == found
