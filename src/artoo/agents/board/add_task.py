"""How a task comes onto the board, whoever hands it in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from artoo.agents.board.rows import (
    LONGEST_NOTE,
    check_not_retired,
    clipped,
    find,
    mover_of,
    queue,
    record_change,
    record_move,
)
from artoo.agents.board.rules import ComplexityRule, check_complexity, ruled
from artoo.agents.storage.transaction import Reading, Writing, storable
from artoo.contracts.agents import (
    FOREIGN,
    OPERATOR,
    POLICY,
    BoardState,
    BoardTask,
    Complexity,
    Priority,
    TaskChanged,
)
from artoo.contracts.errors import ActorRefused, MoveRefused

MOST_TASKS = 10_000
"""Tasks on the board that are not archived."""

LONGEST_TEXT = 20_000
"""Characters of a task's text, as the contract has it."""

_Kind = Literal["priority", "complexity", "assignee", "reviewer", "released", "asked", "question"]


class NewTask(NamedTuple):
    """A task that is not on the board yet. `assignee` None: whoever may take it."""

    id: str
    text: str
    creator: str
    priority: Priority = Priority.STANDARD
    complexity: Complexity | None = None
    assignee: str | None = None
    project: str = ""


def check_text(new: NewTask) -> None:
    """Raises MoveRefused for a text or a project that no task can have."""
    if storable(new.project) != new.project:
        raise MoveRefused(f"The project {new.project!r} has a name that is no UTF-8; rename the directory.")
    text = storable(new.text)
    if not text.strip() or len(text) > LONGEST_TEXT:
        raise MoveRefused(
            f"A task needs a text of 1 to {LONGEST_TEXT} characters, this one has {len(text.strip())};"
            " put what is long into a file and name it."
        )


def add_in(writing: Writing, new: NewTask, rules: Sequence[ComplexityRule]) -> BoardTask:
    """Puts a task on the board, pending, within a transaction. `rules`: of tasks whose complexity nobody sets.

    Raises ActorRefused, MoveRefused. A foreign agent was judged by the operator's policy before (`foreign`).
    """
    _check_addition(writing, new)
    if new.complexity is not None:
        check_complexity(new.id, new.creator)
    writing.run(
        "INSERT INTO tasks (id, text, state, priority, complexity, assignee, creator, open_to_all, project,"
        " queue, queued_us, created_at_us, updated_at_us)"
        " VALUES (?, ?, 'pending', ?, ?, ?, ?, ?, ?, 0, 0, ?, ?)",
        (
            *(new.id, storable(new.text), new.priority.value, new.complexity.value if new.complexity else None),
            *(new.assignee, new.creator, new.assignee is None, new.project, writing.now_us, writing.now_us),
        ),
    )
    queue(writing, new.id)
    record_move(writing, new.id, None, BoardState.PENDING, new.creator, "added")
    if new.complexity is None:
        by_rule = ruled(rules, new.project, new.assignee, new.creator, new.priority)
        if by_rule is not None:
            writing.run("UPDATE tasks SET complexity = ? WHERE id = ?", (by_rule.value, new.id))
            record(writing, find(writing, new.id), "complexity", POLICY, f"unset -> {by_rule.value}")
    return find(writing, new.id)


def check_assignee(reading: Reading, assignee: str | None) -> None:
    """Raises ActorRefused unless a task can be `assignee`'s (None: anybody's)."""
    if assignee is not None and assignee != OPERATOR and mover_of(reading, assignee).trust is None:
        raise ActorRefused(f"A task cannot be {assignee}'s; name an agent, or the operator.")
    if assignee is not None:
        check_not_retired(reading, assignee)


def record(writing: Writing, task: BoardTask, change: _Kind, actor: str, detail: str) -> None:
    """Keeps a change of a task that is no transition."""
    record_change(
        writing,
        TaskChanged(
            board_task=task.id, change=change, actor=actor, detail=clipped(detail, LONGEST_NOTE), at=writing.now
        ),
    )


def _check_addition(writing: Writing, new: NewTask) -> None:
    if not new.creator.startswith(FOREIGN):
        adder = mover_of(writing, new.creator)
        if adder.idle:
            raise ActorRefused(f"Agent {new.creator} may not add tasks: {adder.idle}.")
    check_assignee(writing, new.assignee)
    if writing.count("SELECT count(*) FROM tasks WHERE state <> 'archived'") >= MOST_TASKS:
        raise MoveRefused(f"The board is full: {MOST_TASKS} tasks that are not archived. Archive or cancel some.")
