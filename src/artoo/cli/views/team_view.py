"""Tables with column widths, the rows of tasks, and short ids and times, for the team's commands."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size

from artoo.cli.display.sanitize import one_line
from artoo.cli.results.task_names import ID_SHOWN
from artoo.contracts.agents import BoardTask, TaskChanged, TaskMoved
from artoo.words.shown import local_time

LONGEST_ID = 20
"""Number of characters that are shown of an id that is no UUID. They contain its kind, and are enough to
distinguish it."""

NARROWEST = 12
"""Minimum number of columns for the last cell of a row. If there are fewer, this cell gets a line of its own."""

_PLAIN_ID = 36
_GAP = 2


def short(identifier: str) -> str:
    """Return a beginning of an id that is practically unique."""
    return identifier[: ID_SHOWN if len(identifier) == _PLAIN_ID else LONGEST_ID]


def table_lines(heads: Sequence[str], rows: Iterable[Sequence[str]], empty: str) -> list[str]:
    """Return the rows of a table with short texts. The last cell takes the remaining part of the line, or a line of
    its own."""
    listed = [[one_line(cell) for cell in row] for row in rows]
    if not listed:
        return [empty]
    widths = [max(map(cell_len, cells)) for cells in zip(heads, *listed, strict=True)]
    columns = shutil.get_terminal_size().columns
    rest = columns - sum(widths[:-1]) - _GAP * len(widths[:-1])
    # On a narrow terminal the ids must not be shortened, because the user passes them to commands.
    if rest < min(NARROWEST, widths[-1]):
        blocks = ((" ".join(filter(None, row[:-1])), f"  {_cut(row[-1], columns - _GAP)}") for row in listed)
        return [line for block in blocks for line in block if line.strip()]
    widths[-1] = min(rest, widths[-1])
    return [
        (" " * _GAP)
        .join(set_cell_size(_cut(cell, width), width) for cell, width in zip(row, widths, strict=True))
        .rstrip()
        for row in (heads, *listed)
    ]


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"


def task_row(task: BoardTask) -> tuple[str, ...]:
    """Return the cells of one task for a table."""
    return (short(task.id), task.state.value, task.priority.value, task.assignee or "-", task.text)


TASK_HEADS = ("id", "state", "priority", "agent", "text")


def record_line(record: TaskMoved | TaskChanged) -> str:
    """Format one line of a task's history."""
    if isinstance(record, TaskChanged):
        return f"{local_time(record.at)}  {record.change}: {record.detail} (by {record.actor})"
    before = record.before.value if record.before is not None else "new"
    why = f": {record.reason}" if record.reason else ""
    policy = ", as the trust policy says" if record.by_policy else ""
    return f"{local_time(record.at)}  {before} -> {record.after.value} (by {record.actor}{policy}){why}"
