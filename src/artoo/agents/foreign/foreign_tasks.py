"""Accept, report and cancel tasks of foreign agents, within the operator's limits (`settings.py`).

    message ─► accept: known before? within the policy? ─► board task, with the policy's limits of that time
            └► more, for a task that has not ended ──────► its text grows, and earlier work is done again
    task ─► can be read and cancelled only by its sender

Methods raise ForeignRefused, with a message that the foreign agent may read. After an error nothing has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from artoo.agents.board.board import LONGEST_TEXT, NewTask, add_in, cancel_in
from artoo.agents.board.operator_todo import why_left
from artoo.agents.board.rows import find_row, record, task_of
from artoo.agents.board.rules import ComplexityRule, Policies
from artoo.agents.foreign.messages import (
    ForeignMessage,
    KnownMessage,
    done_again,
    extended,
    keep_message,
    known_message,
    messages_of,
)
from artoo.agents.foreign.settings import Peer
from artoo.agents.storage.database import Database, Stored, reads, writes
from artoo.agents.storage.transaction import Reading, Row, Writing, made, storable
from artoo.contracts.agents import FOREIGN, BoardState, BoardTask, TaskMoved
from artoo.contracts.errors import ForeignRefused, GovernanceRefused, QuotaSpent
from artoo.ports.ids import Ids

MOST_MOVES = 1_000
"""Maximum number of moves of a task between states that are read."""

_OVER = (BoardState.COMPLETED, BoardState.FAILED, BoardState.CANCELLED)
"""The states that end a task for the foreign agent that sent it. The first of them that the task reaches is final
for the sender."""

_OPEN = "t.state NOT IN ('completed', 'failed', 'cancelled', 'archived')"


@dataclass(frozen=True, slots=True)
class ForeignRequest:
    """A message that asks for work. `agent`: the agent to which it is addressed, or empty for any agent. `context`:
    an id that the sender chose."""

    message: str
    context: str
    text: str
    agent: str = ""


@dataclass(frozen=True, slots=True)
class ForeignTask:
    """The current state of a task that a foreign agent sent. `messages` are in order, beginning with the first
    request. `moves` are in order too, and `position` is that of the last move.

    `ended`: the first move that ended the task. `waits`: true if only the operator can continue the task.
    """

    task: BoardTask
    peer: str
    agent: str
    messages: tuple[ForeignMessage, ...]
    context: str
    moves: tuple[TaskMoved, ...]
    position: int
    waits: bool

    @property
    def ended(self) -> TaskMoved | None:
        """Return the move that ended the task for its sender. Return None if it has not ended."""
        return next((one for one in self.moves if one.after in _OVER), None)


class Foreign(Stored):
    """The tasks that foreign agents have sent. Use one object for each process and home."""

    def __init__(
        self, database: Database, ids: Ids, *, policies: Policies, rules: Sequence[ComplexityRule] = ()
    ) -> None:
        super().__init__(database)
        self._ids = ids
        self._policies = policies
        self._rules = tuple(rules)

    @writes
    def accept(self, writing: Writing, peer: str, asked: ForeignRequest, limits: Peer) -> tuple[ForeignTask, bool]:
        """Add the requested task to the board. Also returns False if the same message was received before."""
        # The transactions of one sender run one after another, because its limits are checked by counting rows, and
        # a message must be accepted only once.
        writing.alone(FOREIGN + peer)
        known = known_message(writing, peer, asked.agent, asked.message)
        if known is not None:
            return self._again(writing, known, asked), False
        new = NewTask(
            self._ids.new(), asked.text, FOREIGN + peer, assignee=asked.agent or None, project=limits.directory
        )
        self._check_open(writing, peer, limits)
        _check_day(writing, peer, limits)
        try:
            add_in(writing, new, self._rules)
        except GovernanceRefused as error:
            raise ForeignRefused(str(error)) from error
        writing.insert(
            "foreign_tasks",
            board_task=new.id,
            peer=peer,
            agent=asked.agent,
            message=asked.message,
            context=asked.context or self._ids.new(),
            trust=limits.trust,
            calls=limits.calls,
            tokens=limits.tokens,
            seconds=limits.seconds,
            money=limits.money,
            at_us=writing.now_us,
        )
        keep_message(writing, peer, asked.agent, new.id, ForeignMessage(asked.message, storable(asked.text)))
        return self._of(writing, _known(writing, new.id)), True

    @writes
    def more(
        self, writing: Writing, peer: str, task_id: str, asked: ForeignRequest, limits: Peer
    ) -> ForeignTask | None:
        """Add a message to a task of the sender that has not ended. Return None if the sender has no such task.

        If the task is in review, it is done again at once. If an agent is working on it, it is done again
        afterwards.
        """
        writing.alone(FOREIGN + peer)
        if _row(writing, task_id, peer, asked.agent) is None:
            return None
        known = known_message(writing, peer, asked.agent, asked.message)
        if known is not None and known.board_task == task_id:
            return self._again(writing, known, asked)
        if known is not None:
            raise ForeignRefused(f"A message {asked.message!r} has come before, for another task.")
        # Lock the row of the task for the rest of the transaction.
        find_row(writing, task_id)
        seen = self._of(writing, _known(writing, task_id))
        if seen.ended is not None:
            raise ForeignRefused("the task is over; without taskId, a new one begins in this context")
        _check_day(writing, peer, limits)
        self._add(writing, seen, ForeignMessage(asked.message, storable(asked.text)))
        return self._of(writing, _known(writing, task_id))

    def _add(self, writing: Writing, seen: ForeignTask, said: ForeignMessage) -> None:
        task, name = seen.task, FOREIGN + seen.peer
        # The text is extended first. If that makes it too long, the message changes nothing.
        whole = extended(task, said.text, LONGEST_TEXT)
        keep_message(writing, seen.peer, seen.agent, task.id, said)
        writing.change("tasks", task.id, text=whole)
        record(writing, task, "asked", name, said.text)
        if task.state is BoardState.REVIEW:
            done_again(writing, task)

    @reads
    def get(self, reading: Reading, peer: str, agent: str, task_id: str) -> ForeignTask | None:
        """Return a task that this foreign agent sent to this agent. Return None if there is no such task."""
        row = _row(reading, task_id, peer, agent)
        return None if row is None else self._of(reading, row)

    @reads
    def seen(self, reading: Reading, task_id: str) -> ForeignTask | None:
        """Return a task of any foreign agent, so that its push targets can be notified. Return None if no foreign
        agent sent it."""
        row = _row(reading, task_id)
        return None if row is None else self._of(reading, row)

    @reads
    def list(
        self, reading: Reading, peer: str, agent: str, *, context: str = "", limit: int = 1_000
    ) -> tuple[ForeignTask, ...]:
        """Return the tasks that the sender gave to this agent, most recently changed first."""
        rows = reading.all(
            f"{_ROWS} WHERE f.peer = ? AND f.agent = ? AND (? = '' OR f.context = ?)"
            " ORDER BY t.updated_at_us DESC, t.id DESC LIMIT ?",
            (peer, agent, context, context, limit),
        )
        return tuple(self._of(reading, row) for row in rows)

    @writes
    def cancel(self, writing: Writing, peer: str, agent: str, task_id: str) -> ForeignTask | None:
        """Cancel a task of the sender. The worker is informed by the loss of its claim. Return None if there is no
        such task."""
        row = _row(writing, task_id, peer, agent)
        if row is None:
            return None
        seen = self._of(writing, row)
        if seen.ended is not None:
            raise ForeignRefused(f"Task {task_id} is over already ({seen.ended.after.value}).")
        cancel_in(writing, seen.task, FOREIGN + peer, "cancelled by who handed it in")
        return self._of(writing, _known(writing, task_id))

    @reads
    def spendable(self, reading: Reading, task_id: str) -> Peer | None:
        """Return the limits for the work on a task. Return None if no foreign agent sent it."""
        row = reading.one(
            "SELECT trust, calls, tokens, seconds, money FROM foreign_tasks WHERE board_task = ?", (task_id,)
        )
        return None if row is None else made(Peer, row)

    def _check_open(self, reading: Reading, peer: str, limits: Peer) -> None:
        """Raise QuotaSpent if the sender has too many unfinished tasks. Tasks that wait for a review by the
        operator are not counted, because the sender cannot finish them. They are limited nevertheless, by the
        number of messages in a day."""
        rows = reading.all(f"{_ROWS} WHERE f.peer = ? AND {_OPEN}", (peer,))
        if len(rows) < limits.open:
            return
        handed_in = (row for row in rows if row["state"] == BoardState.REVIEW)
        open_now = len(rows) - sum(bool(why_left(reading, row, self._policies)) for row in handed_in)
        if open_now >= limits.open:
            raise QuotaSpent(
                f"{open_now} tasks of {peer} are open, and the operator allows {limits.open} at a time; wait for"
                " one of them, or cancel one. Nothing was started."
            )

    def _again(self, writing: Writing, known: KnownMessage, asked: ForeignRequest) -> ForeignTask:
        if known.text != storable(asked.text):
            raise ForeignRefused(
                f"A message {asked.message!r} has come before and said something else; give every message an id"
                " of its own."
            )
        return self._of(writing, _known(writing, known.board_task))

    def _of(self, reading: Reading, row: Row) -> ForeignTask:
        task = task_of(row)
        moves = reading.all(
            "SELECT * FROM transitions WHERE board_task = ? ORDER BY position LIMIT ?", (task.id, MOST_MOVES)
        )
        return ForeignTask(
            task=task,
            peer=row["peer"],
            agent=row["agent"],
            messages=messages_of(reading, task.id),
            context=row["context"],
            moves=tuple(made(TaskMoved, row) for row in moves),
            position=int(moves[-1]["position"]) if moves else 0,
            waits=bool(why_left(reading, row, self._policies)),
        )


_ROWS = (
    "SELECT t.*, f.board_task, f.peer, f.agent, f.context FROM foreign_tasks f JOIN tasks t ON t.id = f.board_task"
)


def _row(reading: Reading, task_id: str, *whose: str) -> Row | None:
    """Return the row of a task. If `whose` (sender and agent) is given, return None for the tasks of other
    senders."""
    row = reading.one(f"{_ROWS} WHERE f.board_task = ?", (task_id,))
    return row if row is None or not whose or (row["peer"], row["agent"]) == whose else None


def _known(reading: Reading, task_id: str) -> Row:
    row = _row(reading, task_id)
    if row is None:
        raise ForeignRefused(f"there is no task {task_id}")
    return row


def _check_day(reading: Reading, peer: str, limits: Peer) -> None:
    since = reading.now_us - 24 * 3_600 * 1_000_000
    today = reading.count("SELECT count(*) FROM foreign_messages WHERE peer = ? AND at_us > ?", (peer, since))
    if today >= limits.day:
        raise QuotaSpent(
            f"{peer} has asked {today} times within a day, and the operator allows {limits.day}; come back later."
            " Nothing was started."
        )
