"""The board of governed tasks: durable, one for all processes of a home (SPEC section 11).

What workers do is in `work.py`, what reviewers do in `reviews.py`; both are reached from here. Every method raises
MoveRefused or ActorRefused, each with what would be allowed, and then nothing has changed; or ActivityStoreError.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from artoo.agents.board.add_task import NewTask, add_in, check_assignee, check_text, record
from artoo.agents.board.reviews import Reviews
from artoo.agents.board.rows import (
    ANYBODY,
    add_note,
    check_not_retired,
    find,
    move,
    moved_of,
    mover_of,
    queue,
    task_of,
)
from artoo.agents.board.rules import (
    SEED_POLICIES,
    ComplexityRule,
    Policies,
    check_complexity,
    check_own,
    check_steward,
    way_to_cancel,
)
from artoo.agents.board.worker import Work
from artoo.agents.storage.database import Database
from artoo.agents.storage.monotonic_clock import moment
from artoo.agents.storage.transaction import Reading, Row, Writing
from artoo.contracts.agents import (
    OPERATOR,
    BoardState,
    BoardTask,
    Complexity,
    Priority,
    TaskChanged,
    TaskMoved,
)
from artoo.contracts.errors import ActorRefused, MoveRefused
from artoo.ports.ids import Ids

_Change = Callable[[Writing, BoardTask], None]

_ASSIGNABLE = frozenset({BoardState.PENDING, BoardState.BLOCKED, BoardState.FAILED, BoardState.REJECTED})


class Board:
    """Tasks and who may do what with them. `actor` is an agent's name, `operator`, `runtime` or `policy`."""

    def __init__(
        self,
        database: Database,
        ids: Ids,
        *,
        policies: Policies = SEED_POLICIES,
        rules: Sequence[ComplexityRule] = (),
    ) -> None:
        """`rules`: the operator's, for tasks whose complexity nobody sets."""
        self._rules = tuple(rules)
        self._database = database
        self._ids = ids
        self._policies = policies
        self.work = Work(database)
        self.reviews = Reviews(database, ids, policies)

    async def add(
        self,
        text: str,
        actor: str,
        *,
        priority: Priority = Priority.STANDARD,
        complexity: Complexity | None = None,
        assignee: str | None = None,
        project: str = "",
    ) -> BoardTask:
        """Puts a new task on the board, pending. `assignee` None: whoever may take it."""
        new = NewTask(self._ids.new(), text, actor, priority, complexity, assignee, project)
        check_text(new)
        return await self._database.write(lambda writing: add_in(writing, new, self._rules))

    async def get(self, task_id: str) -> BoardTask:
        """The task as it stands."""
        return await self._database.read(lambda reading: find(reading, task_id))

    async def list(
        self,
        states: Collection[BoardState] | None = None,
        *,
        assignee: str | None = None,
        limit: int = 1_000,
    ) -> tuple[BoardTask, ...]:
        """Tasks in these states (None: all but archived), the newest last, at most `limit` of the newest."""
        wanted = [state.value for state in (set(BoardState) - {BoardState.ARCHIVED} if states is None else states)]

        def work(reading: Reading) -> tuple[BoardTask, ...]:
            marks = ", ".join("?" * len(wanted))
            theirs = "" if assignee is None else " AND assignee = ?"
            rows = reading.all(
                f"SELECT * FROM tasks WHERE state IN ({marks}){theirs}"
                " ORDER BY created_at_us DESC, id DESC LIMIT ?",
                (*wanted, *(() if assignee is None else (assignee,)), limit),
            )
            return tuple(task_of(row) for row in reversed(rows))

        return await self._database.read(work)

    async def states(self, task_ids: Collection[str]) -> dict[str, BoardState]:
        """How these tasks stand; those that the board does not know are left out."""

        def work(reading: Reading) -> dict[str, BoardState]:
            found = (reading.one("SELECT id, state FROM tasks WHERE id = ?", (task_id,)) for task_id in task_ids)
            return {row["id"]: BoardState(row["state"]) for row in found if row is not None}

        return await self._database.read(work)

    async def log(self, task_id: str) -> tuple[TaskMoved | TaskChanged, ...]:
        """Everything that was done with a task, in order, from its addition on."""

        def work(reading: Reading) -> tuple[TaskMoved | TaskChanged, ...]:
            find(reading, task_id)
            moves = reading.all("SELECT * FROM transitions WHERE board_task = ?", (task_id,))
            changes = reading.all("SELECT * FROM task_changes WHERE board_task = ?", (task_id,))
            kept = [(row["position"], moved_of(row)) for row in moves]
            kept += [(row["position"], _changed(row)) for row in changes]
            return tuple(record for _, record in sorted(kept, key=lambda entry: entry[0]))

        return await self._database.read(work)

    async def set_priority(self, task_id: str, priority: Priority, actor: str) -> BoardTask:
        """The operator's."""

        def work(writing: Writing, task: BoardTask) -> None:
            check_own(task_id, mover_of(writing, actor), "the priority of a task")
            writing.run("UPDATE tasks SET priority = ? WHERE id = ?", (priority.value, task_id))
            writing.arrived(ANYBODY)
            record(writing, task, "priority", actor, f"{task.priority.value} -> {priority.value}")

        return await self._change(task_id, work)

    async def set_complexity(self, task_id: str, complexity: Complexity | None, actor: str) -> BoardTask:
        """The operator's or a rule's (`policy`), never an agent's. A submission in review stays in review."""

        def work(writing: Writing, task: BoardTask) -> None:
            check_complexity(task_id, actor)
            writing.run(
                "UPDATE tasks SET complexity = ? WHERE id = ?", (complexity.value if complexity else None, task_id)
            )
            before, after = (value.value if value else "unset" for value in (task.complexity, complexity))
            record(writing, task, "complexity", actor, f"{before} -> {after}")

        return await self._change(task_id, work)

    async def assign(self, task_id: str, assignee: str | None, actor: str) -> BoardTask:
        """The operator's. Not while somebody works on the task or its submission waits for review."""

        def work(writing: Writing, task: BoardTask) -> None:
            check_own(task_id, mover_of(writing, actor), "who works on a task")
            if task.state not in _ASSIGNABLE:
                raise MoveRefused(
                    f"Task {task_id} is {task.state.value} and cannot be given to another now;"
                    " block or reject it first."
                )
            check_assignee(writing, assignee)
            # What one agent began, another does not resume under its own name.
            writing.run(
                "UPDATE tasks SET assignee = ?, open_to_all = ?, run = ? WHERE id = ?",
                (assignee, assignee is None, task.run if task.assignee == assignee else None, task_id),
            )
            writing.arrived(ANYBODY)
            record(writing, task, "assignee", actor, f"{task.assignee or 'anybody'} -> {assignee or 'anybody'}")

        return await self._change(task_id, work)

    async def set_reviewer(self, task_id: str, reviewer: str | None, actor: str) -> BoardTask:
        """The operator's: only this agent, and the operator, may review it. None: whoever may."""

        def work(writing: Writing, task: BoardTask) -> None:
            check_own(task_id, mover_of(writing, actor), "who reviews a task")
            if reviewer is not None and reviewer != OPERATOR:
                check_not_retired(writing, reviewer)
                named = mover_of(writing, reviewer)
                if named.trust is None or not self._policies[named.trust].can_approve:
                    raise ActorRefused(f"{reviewer} may not review: its trust level approves nothing.")
            writing.run("UPDATE tasks SET reviewer = ? WHERE id = ?", (reviewer, task_id))
            writing.arrived(ANYBODY)
            record(writing, task, "reviewer", actor, f"{task.reviewer or 'anybody'} -> {reviewer or 'anybody'}")

        return await self._change(task_id, work)

    async def release(self, task_id: str, actor: str, note: str = "") -> BoardTask:
        """What blocked a task is gone: it may be taken again. `note` reaches who takes it."""

        def work(writing: Writing, task: BoardTask) -> None:
            check_steward(task_id, mover_of(writing, actor), "released")
            if task.state is not BoardState.BLOCKED:
                raise MoveRefused(f"Task {task_id} is {task.state.value}; only a blocked task can be released.")
            if note.strip():
                add_note(writing, task, f"{actor}: {note}")
            queue(writing, task_id)
            writing.run("UPDATE tasks SET resumable = TRUE WHERE id = ?", (task_id,))
            record(writing, task, "released", actor, note)

        return await self._change(task_id, work)

    async def retry(self, task_id: str, actor: str, note: str = "") -> BoardTask:
        """From failed or rejected back to pending. `note` reaches who works on it next."""

        def work(writing: Writing) -> BoardTask:
            check_steward(task_id, mover_of(writing, actor), "tried again")
            task = move(writing, find(writing, task_id), BoardState.PENDING, actor, note)
            if note.strip():
                add_note(writing, task, f"{actor}: {note}")
            return find(writing, task_id)

        return await self._database.write(work)

    async def reconsider(self, task_id: str, actor: str, why: str) -> BoardTask:
        """The operator's: what was rejected, or ended without a result, is to be looked at by them as it is.

        From failed or rejected to review, each step the operator's; nobody else reviews it.
        """

        def work(writing: Writing) -> BoardTask:
            check_own(task_id, mover_of(writing, actor), "looking again at what was turned down")
            task = find(writing, task_id)
            if task.state not in (BoardState.FAILED, BoardState.REJECTED):
                raise MoveRefused(
                    f"Task {task_id} is {task.state.value}; only what was turned down is reconsidered."
                )
            worker = task.assignee
            for state in (BoardState.PENDING, BoardState.IN_PROGRESS, BoardState.REVIEW):
                task = move(writing, task, state, actor, why)
            writing.run("UPDATE tasks SET assignee = ?, reviewer = ? WHERE id = ?", (worker, OPERATOR, task_id))
            return find(writing, task_id)

        return await self._database.write(work)

    async def cancel(self, task_id: str, actor: str, reason: str = "") -> BoardTask:
        """The operator's. From in_progress it goes through blocked, from review through rejected, attributed.

        Whoever works on it learns so when they renew their claim or hand in.
        """

        def work(writing: Writing) -> BoardTask:
            check_own(task_id, mover_of(writing, actor), "cancelling a task")
            task = find(writing, task_id)
            for state in way_to_cancel(task.state):
                task = move(writing, task, state, actor, reason or "cancelled")
            return task

        return await self._database.write(work)

    async def archive(self, task_id: str, actor: str) -> BoardTask:
        """From completed or cancelled; the end of every task."""

        def work(writing: Writing) -> BoardTask:
            check_steward(task_id, mover_of(writing, actor), "archived")
            return move(writing, find(writing, task_id), BoardState.ARCHIVED, actor)

        return await self._database.write(work)

    async def _change(self, task_id: str, change: _Change) -> BoardTask:
        def work(writing: Writing) -> BoardTask:
            change(writing, find(writing, task_id))
            return find(writing, task_id)

        return await self._database.write(work)


def _changed(row: Row) -> TaskChanged:
    return TaskChanged(
        event=row["event"],
        board_task=row["board_task"],
        change=row["change"],
        actor=row["actor"],
        detail=row["detail"],
        at=moment(row["at_us"]),
    )
