"""Add, assign, list and cancel tasks of the board, with the limits on open tasks and on the text of a task.

All processes of a home share the board, which is durable. Reference: SPEC section 11.

`worker.py` contains the operations of workers, and `reviews.py` those of reviewers. `Board` gives access to both.
Methods raise MoveRefused or ActorRefused, whose messages name the allowed alternatives, or ActivityStoreError.
After an error nothing has changed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from artoo.agents.board.reviews import Reviews
from artoo.agents.board.rows import (
    ANYBODY,
    add_note,
    check_not_retired,
    find,
    give_to,
    move,
    mover_of,
    queue,
    record,
    record_move,
    task_of,
)
from artoo.agents.board.rules import (
    SEED_POLICIES,
    ComplexityRule,
    Policies,
    check_complexity,
    check_own,
    check_steward,
    ruled,
    way_to_cancel,
)
from artoo.agents.board.worker import Work
from artoo.agents.storage.database import Database, Stored, reads, writes
from artoo.agents.storage.transaction import Reading, Writing, made, storable
from artoo.contracts.agents import (
    FOREIGN,
    OPERATOR,
    POLICY,
    BoardState,
    BoardTask,
    Complexity,
    Priority,
    TaskChanged,
    TaskMoved,
)
from artoo.contracts.errors import ActorRefused, MoveRefused
from artoo.ports.ids import Ids

MOST_TASKS = 10_000
"""Maximum number of tasks on the board that are not archived."""

LONGEST_TEXT = 20_000
"""Maximum number of characters of a task's text, as in the contract."""

_ASSIGNABLE = frozenset({BoardState.PENDING, BoardState.BLOCKED, BoardState.FAILED, BoardState.REJECTED})


class NewTask(NamedTuple):
    """A task that is not on the board yet. `assignee`: the agent that must do the task. If it is None, any agent
    may take the task."""

    id: str
    text: str
    creator: str
    priority: Priority = Priority.STANDARD
    complexity: Complexity | None = None
    assignee: str | None = None
    project: str = ""


def add_in(writing: Writing, new: NewTask, rules: Sequence[ComplexityRule]) -> BoardTask:
    """Add a pending task to the board, within a transaction. `rules` determine the complexity of a task that has
    none.

    Raises ActorRefused, MoveRefused. If a foreign agent sent the task, the caller has already checked the policy
    (`foreign`).
    """
    _check_addition(writing, new)
    complexity = new.complexity
    if complexity is None:
        complexity = ruled(rules, new.project, new.assignee, new.creator, new.priority)
    else:
        check_complexity(new.id, new.creator)
    writing.insert(
        "tasks",
        id=new.id,
        text=storable(new.text),
        state=BoardState.PENDING,
        priority=new.priority,
        complexity=complexity,
        assignee=new.assignee,
        creator=new.creator,
        open_to_all=new.assignee is None,
        project=new.project,
        queue=0,
        queued_us=0,
        created_at_us=writing.now_us,
        updated_at_us=writing.now_us,
    )
    # The task must be in its queue before its creation is recorded, because both take their number from the same
    # counter.
    queue(writing, new.id)
    record_move(writing, new.id, None, BoardState.PENDING, new.creator, "added")
    task = find(writing, new.id)
    if complexity is not None and new.complexity is None:
        record(writing, task, "complexity", POLICY, f"unset -> {complexity.value}")
    return task


class Board(Stored):
    """The tasks of a home, and the rules on who may change them. `actor`: the name of an agent, or `operator`,
    `runtime` or `policy`."""

    def __init__(
        self,
        database: Database,
        ids: Ids,
        *,
        policies: Policies = SEED_POLICIES,
        rules: Sequence[ComplexityRule] = (),
    ) -> None:
        """Open the board. `rules`: the operator's rules that determine the complexity of a task that has none."""
        super().__init__(database)
        self._rules = tuple(rules)
        self._ids = ids
        self._policies = policies
        self.work = Work(database)
        self.reviews = Reviews(database, ids, policies)

    @writes
    def add(
        self,
        writing: Writing,
        text: str,
        actor: str,
        *,
        priority: Priority = Priority.STANDARD,
        complexity: Complexity | None = None,
        assignee: str | None = None,
        project: str = "",
    ) -> BoardTask:
        """Add a new pending task to the board. If `assignee` is None, any agent may take it."""
        new = NewTask(self._ids.new(), text, actor, priority, complexity, assignee, project)
        return add_in(writing, new, self._rules)

    @reads
    def get(self, reading: Reading, task_id: str) -> BoardTask:
        """Return the current state of the task."""
        return find(reading, task_id)

    @reads
    def list(
        self,
        reading: Reading,
        states: Collection[BoardState] | None = None,
        *,
        assignee: str | None = None,
        limit: int = 1_000,
    ) -> tuple[BoardTask, ...]:
        """Return at most `limit` of the newest tasks in these states, oldest first. If `states` is None, all tasks
        except archived ones are listed."""
        wanted = [state.value for state in (set(BoardState) - {BoardState.ARCHIVED} if states is None else states)]
        rows = reading.all(
            f"SELECT * FROM tasks WHERE state IN ({', '.join('?' * len(wanted))})"
            f"{'' if assignee is None else ' AND assignee = ?'} ORDER BY created_at_us DESC, id DESC LIMIT ?",
            (*wanted, *(() if assignee is None else (assignee,)), limit),
        )
        return tuple(task_of(row) for row in reversed(rows))

    @reads
    def states(self, reading: Reading, task_ids: Collection[str]) -> dict[str, BoardState]:
        """Return the states of these tasks. Tasks that the board does not know are left out."""
        found = (reading.one("SELECT id, state FROM tasks WHERE id = ?", (task_id,)) for task_id in task_ids)
        return {row["id"]: BoardState(row["state"]) for row in found if row is not None}

    @reads
    def log(self, reading: Reading, task_id: str) -> tuple[TaskMoved | TaskChanged, ...]:
        """Return all changes of a task in order, including its moves between states. The first is its creation."""
        find(reading, task_id)
        # Moves and other changes are in two tables, but the numbers of their order come from one counter.
        kept = [
            (row["position"], made(kind, row))
            for kind, table in ((TaskMoved, "transitions"), (TaskChanged, "task_changes"))
            for row in reading.all(f"SELECT * FROM {table} WHERE board_task = ?", (task_id,))
        ]
        return tuple(done for _, done in sorted(kept, key=lambda entry: entry[0]))

    @writes
    def set_priority(self, writing: Writing, task_id: str, priority: Priority, actor: str) -> BoardTask:
        """Set the priority of a task. Only the operator may do this."""
        task = find(writing, task_id)
        check_own(task_id, mover_of(writing, actor), "the priority of a task")
        # The position in the queue is kept. The priority selects the queue, and the time of arrival determines the
        # position in it.
        writing.change("tasks", task_id, priority=priority)
        writing.arrived(ANYBODY)
        record(writing, task, "priority", actor, f"{task.priority.value} -> {priority.value}")
        return find(writing, task_id)

    @writes
    def set_complexity(
        self, writing: Writing, task_id: str, complexity: Complexity | None, actor: str
    ) -> BoardTask:
        """Set the complexity of a task. The operator or a rule (`policy`) may do this. A task in review stays in
        review."""
        task = find(writing, task_id)
        check_complexity(task_id, actor)
        writing.change("tasks", task_id, complexity=complexity)
        before, after = (value.value if value else "unset" for value in (task.complexity, complexity))
        record(writing, task, "complexity", actor, f"{before} -> {after}")
        return find(writing, task_id)

    @writes
    def assign(self, writing: Writing, task_id: str, assignee: str | None, actor: str) -> BoardTask:
        """Set the assignee of a task. Only the operator may do this, and not while the task is in progress or in
        review."""
        task = find(writing, task_id)
        check_own(task_id, mover_of(writing, actor), "who works on a task")
        if task.state not in _ASSIGNABLE:
            raise MoveRefused(
                f"Task {task_id} is {task.state.value} and cannot be given to another now;"
                " block or reject it first."
            )
        _check_assignee(writing, assignee)
        # An agent never resumes a run that another agent has begun.
        run = task.run if task.assignee == assignee else None
        writing.change("tasks", task_id, open_to_all=assignee is None, run=run)
        give_to(writing, task, "assignee", assignee, actor)
        return find(writing, task_id)

    @writes
    def set_reviewer(self, writing: Writing, task_id: str, reviewer: str | None, actor: str) -> BoardTask:
        """Set the only agent, besides the operator, that may review the task. If `reviewer` is None, any agent that
        may review can do it."""
        task = find(writing, task_id)
        check_own(task_id, mover_of(writing, actor), "who reviews a task")
        if reviewer is not None and reviewer != OPERATOR:
            check_not_retired(writing, reviewer)
            named = mover_of(writing, reviewer)
            if named.trust is None or not self._policies[named.trust].can_approve:
                raise ActorRefused(f"{reviewer} may not review: its trust level approves nothing.")
        give_to(writing, task, "reviewer", reviewer, actor)
        return find(writing, task_id)

    @writes
    def release(self, writing: Writing, task_id: str, actor: str, note: str = "") -> BoardTask:
        """Release a blocked task, so that it can be taken again. `note` is passed to the agent that takes it."""
        check_steward(task_id, mover_of(writing, actor), "released")
        task = find(writing, task_id)
        if task.state is not BoardState.BLOCKED:
            raise MoveRefused(f"Task {task_id} is {task.state.value}; only a blocked task can be released.")
        if note.strip():
            add_note(writing, task, f"{actor}: {note}")
        queue(writing, task_id)
        writing.change("tasks", task_id, resumable=True)
        record(writing, task, "released", actor, note)
        return find(writing, task_id)

    @writes
    def retry(self, writing: Writing, task_id: str, actor: str, note: str = "") -> BoardTask:
        """Move a task from failed or rejected back to pending. `note` is passed to the next agent that works on
        it."""
        check_steward(task_id, mover_of(writing, actor), "tried again")
        task = move(writing, find(writing, task_id), BoardState.PENDING, actor, note)
        if note.strip():
            add_note(writing, task, f"{actor}: {note}")
        return find(writing, task_id)

    @writes
    def reconsider(self, writing: Writing, task_id: str, actor: str, why: str) -> BoardTask:
        """Move a failed or rejected task back to review with its last submission, so that the operator can decide
        again.

        All moves on the way to review are recorded as the operator's. No agent may review the task then.
        """
        check_own(task_id, mover_of(writing, actor), "looking again at what was turned down")
        task = find(writing, task_id)
        if task.state not in (BoardState.FAILED, BoardState.REJECTED):
            raise MoveRefused(f"Task {task_id} is {task.state.value}; only what was turned down is reconsidered.")
        worker = task.assignee
        for state in (BoardState.PENDING, BoardState.IN_PROGRESS, BoardState.REVIEW):
            task = move(writing, task, state, actor, why)
        writing.change("tasks", task_id, assignee=worker, reviewer=OPERATOR)
        return find(writing, task_id)

    @writes
    def cancel(self, writing: Writing, task_id: str, actor: str, reason: str = "") -> BoardTask:
        """Cancel a task on behalf of the operator. A task in progress goes through blocked, and a task in review
        through rejected.

        The worker of the task is informed when it next renews its claim or submits.
        """
        check_own(task_id, mover_of(writing, actor), "cancelling a task")
        return cancel_in(writing, find(writing, task_id), actor, reason or "cancelled")

    @writes
    def archive(self, writing: Writing, task_id: str, actor: str) -> BoardTask:
        """Archive a completed or cancelled task."""
        check_steward(task_id, mover_of(writing, actor), "archived")
        return move(writing, find(writing, task_id), BoardState.ARCHIVED, actor)


def cancel_in(writing: Writing, task: BoardTask, actor: str, reason: str) -> BoardTask:
    """Cancel a task within a transaction, by the moves that the state machine allows."""
    for state in way_to_cancel(task.state):
        task = move(writing, task, state, actor, reason)
    return task


def _check_addition(writing: Writing, new: NewTask) -> None:
    if storable(new.project) != new.project:
        raise MoveRefused(f"The project {new.project!r} has a name that is no UTF-8; rename the directory.")
    text = storable(new.text)
    if not text.strip() or len(text) > LONGEST_TEXT:
        raise MoveRefused(
            f"A task needs a text of 1 to {LONGEST_TEXT} characters, this one has {len(text.strip())};"
            " put what is long into a file and name it."
        )
    if not new.creator.startswith(FOREIGN):
        adder = mover_of(writing, new.creator)
        if adder.idle:
            raise ActorRefused(f"Agent {new.creator} may not add tasks: {adder.idle}.")
    _check_assignee(writing, new.assignee)
    if writing.count("SELECT count(*) FROM tasks WHERE state <> 'archived'") >= MOST_TASKS:
        raise MoveRefused(f"The board is full: {MOST_TASKS} tasks that are not archived. Archive or cancel some.")


def _check_assignee(reading: Reading, assignee: str | None) -> None:
    """Raise ActorRefused unless `assignee` exists and may be given a task. None is allowed. None is allowed."""
    if assignee is None or assignee == OPERATOR:
        return
    if mover_of(reading, assignee).trust is None:
        raise ActorRefused(f"A task cannot be {assignee}'s; name an agent, or the operator.")
    check_not_retired(reading, assignee)
