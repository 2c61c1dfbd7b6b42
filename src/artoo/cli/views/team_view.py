"""How agents, tasks and letters look on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artoo.cli.display.sanitize import one_line
from artoo.cli.results.task_names import ID_SHOWN
from artoo.contracts.agents import BoardTask, TaskChanged, TaskMoved

LONGEST_ID = 20
"""Characters of an id that is no UUID: its kind, and enough of what follows."""

NARROWEST = 12
"""Columns that the last cell of a row needs to stand beside the others."""

_PLAIN_ID = 36
_GAP = 2


def short(identifier: str) -> str:
    """An id as it is shown: a beginning of it that no other has."""
    return identifier[: ID_SHOWN if len(identifier) == _PLAIN_ID else LONGEST_ID]


def when(moment: datetime) -> str:
    """A moment on the person's own clock, as everywhere but in the audit."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def show_table(heads: Sequence[str], rows: Iterable[Sequence[str]], empty: str) -> None:
    """Rows of short texts; the last cell takes what is left of the line, or a line of its own."""
    console = Console(highlight=False)
    listed = [[one_line(cell) for cell in row] for row in rows]
    if not listed:
        console.print(empty)
        return
    widths = [max(map(cell_len, cells)) for cells in zip(heads, *listed, strict=True)]
    rest = console.width - sum(widths[:-1]) - _GAP * len(widths[:-1])
    if rest < min(NARROWEST, widths[-1]):
        _show_blocks(console, listed)
        return
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for head, width in zip(heads, (*widths[:-1], min(rest, widths[-1])), strict=True):
        table.add_column(head, no_wrap=True, width=width, overflow="ellipsis")
    for row in listed:
        table.add_row(*map(Text, row))
    console.print(table)


def _show_blocks(console: Console, rows: Iterable[Sequence[str]]) -> None:
    """Each row as two paragraphs, for a terminal on which it has no room beside itself."""
    for row in rows:
        console.print(Text(" ".join(filter(None, row[:-1]))))
        if row[-1]:
            console.print(Padding(Text(row[-1], overflow="ellipsis", no_wrap=True), (0, 0, 0, 2)))


def task_row(task: BoardTask) -> tuple[str, ...]:
    """One task in a list."""
    return (short(task.id), task.state.value, task.priority.value, task.assignee or "-", task.text)


TASK_HEADS = ("id", "state", "priority", "agent", "text")


def record_line(record: TaskMoved | TaskChanged) -> str:
    """One line of a task's history."""
    if isinstance(record, TaskChanged):
        return f"{when(record.at)}  {record.change}: {record.detail} (by {record.actor})"
    before = record.before.value if record.before is not None else "new"
    why = f": {record.reason}" if record.reason else ""
    policy = ", as the trust policy says" if record.by_policy else ""
    return f"{when(record.at)}  {before} -> {record.after.value} (by {record.actor}{policy}){why}"
