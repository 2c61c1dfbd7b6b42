"""Choose an agent's next task, review or letter by priority, with the wait after which work is promoted.

It is the attention controller of the seed document (part 004) for board and mailbox.

    critical tasks ─ unread mail (critical, standard, background) ─ standard tasks ─ background tasks ─ idle

Within one level, the item that arrived first comes first. An item that has waited for the maximum time is moved to
the level of critical tasks, and ordered by its arrival. From then on, no later item is chosen before it, which
limits its wait. The chosen item is claimed in the same transaction, so that two processes never get the same item.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from artoo.agents.board.claim_holders import machine_of
from artoo.agents.board.reviews import take_review_in
from artoo.agents.board.rows import TaskClaim, mover_of
from artoo.agents.board.rules import SEED_POLICIES, Mover, Policies
from artoo.agents.board.worker import claim_where
from artoo.agents.mail.mailbox import take_mail_in
from artoo.agents.mail.rows import MailClaim
from artoo.agents.storage.database import Database, Stored, reads, writes
from artoo.agents.storage.monotonic_clock import LEASE_SECONDS, seconds_us
from artoo.agents.storage.transaction import Reading, Value, Writing
from artoo.contracts.agents import FOREIGN, Priority
from artoo.ports.ids import Ids

BOUND_SECONDS = 3_600.0
"""Maximum number of seconds before an item is ordered by its arrival instead of its priority."""

Kind = Literal["task", "review", "mail"]
"""The kinds of items that can wait for an agent."""

_Queue = tuple[Kind, Priority]

_FIRST = 0
_MAIL = {Priority.CRITICAL: 1, Priority.STANDARD: 2, Priority.BACKGROUND: 3}
_TASK = {Priority.CRITICAL: _FIRST, Priority.STANDARD: 4, Priority.BACKGROUND: 5}
"""The levels of tasks, by priority. The item with the lowest level comes first."""


@dataclass(frozen=True, slots=True)
class WaitingItem:
    """An item that waits for an agent. It is a task to work on, a submission to review, or a letter.

    `since_us`: the time at which the wait began (in µs of a clock that never goes back). `number` decides between
    items that are otherwise equal. The lowest number comes first.
    """

    kind: Kind
    id: str
    priority: Priority
    since_us: int
    number: int


def choose(waiting: Iterable[WaitingItem], now_us: int, bound_us: int) -> WaitingItem | None:
    """Return the item to handle next. Return None if there is none."""

    def rank(item: WaitingItem) -> tuple[int, int, int]:
        level = (_MAIL if item.kind == "mail" else _TASK)[item.priority]
        return (_FIRST if now_us - item.since_us >= bound_us else level, item.since_us, item.number)

    return min(waiting, key=rank, default=None)


_TO_READ = "recipient = :agent AND partition = 'inbox' AND claim IS NULL"

_TO_WORK = (
    "state IN ('pending', 'blocked') AND (state = 'pending' OR resumable)"
    " AND (assignee = :agent OR assignee IS NULL)"
)
_TO_REVIEW = (
    "state = 'review' AND (claimant IS NULL OR claimant = :agent) AND claim IS NULL"
    " AND (reviewer IS NULL OR reviewer = :agent) AND coalesce(assignee, '') <> :agent"
)
_MADE_HERE = "made_on IN ('', :machine)"
_SENT = (
    "EXISTS (SELECT 1 FROM differences WHERE differences.task = tasks.id"
    " AND differences.submission = tasks.submission AND whole AND stays = '')"
)
"""A condition that is true for a submission whose changes are in the store. Every machine that has the project can
review such a submission."""


class Allocation(Stored):
    """The attention controller. `bound_seconds`: the number of seconds after which a waiting item is ordered only
    by its arrival."""

    def __init__(
        self,
        database: Database,
        ids: Ids,
        *,
        policies: Policies = SEED_POLICIES,
        bound_seconds: float = BOUND_SECONDS,
        tasks: bool = True,
        mail: bool = True,
        projects: Collection[str] | None = None,
    ) -> None:
        """Set which queues are used: `tasks` for the board, and `mail` for letters.

        `projects`: the projects that are available on this machine. Tasks without a project can run on every
        machine. None means all projects.
        """
        super().__init__(database)
        self._ids = ids
        self._policies = policies
        self._bound_us = seconds_us(bound_seconds)
        self._tasks = tasks
        self._mail = mail
        self._named = {f"project{number}": name for number, name in enumerate(sorted(projects or ()))}
        names = ", ".join(["''", *(f":{name}" for name in self._named)])
        here = f"project IN ({names})"
        self._here = "" if projects is None else f" AND {here}"
        files = _MADE_HERE if projects is None else f"({_MADE_HERE} OR ({here} AND {_SENT}))"
        self._reviewable = f" AND {files}"
        others = "".join(f", '{level.value}'" for level, policy in policies.items() if not policy.can_approve)
        # A foreign agent's task must be reviewed. If all agents that may review it also worked on it, only the
        # operator could approve their work. Agents that may review therefore leave such a task to the other agents.
        self._left_to_others = (
            f"(substr(creator, 1, {len(FOREIGN)}) = '{FOREIGN}' AND assignee IS NULL AND EXISTS"
            f" (SELECT 1 FROM agents WHERE trust IN (''{others})"
            " AND NOT paused AND NOT retired AND stopped = ''))"
        )

    @reads
    def peek(self, reading: Reading, agent: str) -> WaitingItem | None:
        """Return the item that the agent would get now. Return None if there is none, or if the agent is paused.
        Nothing is changed."""
        return self._chosen(reading, mover_of(reading, agent))

    @writes
    def next(
        self, writing: Writing, agent: str, *, lease_seconds: float = LEASE_SECONDS
    ) -> TaskClaim | MailClaim | None:
        """Claim and return the item that the agent handles next. Return None if there is none, or if the agent is
        paused.

        If the TaskClaim is for a task in review, the agent is to review it. Raises ActorRefused if the agent does
        not exist.
        """
        token, lease_us = self._ids.new(), seconds_us(lease_seconds)
        mover, spent = mover_of(writing, agent), set[_Queue]()
        while (item := self._chosen(writing, mover, spent)) is not None:
            claim = self._claimed(writing, mover, (item.kind, item.priority), token, lease_us)
            if claim is not None:
                return claim
            # Other processes have locked all remaining items of this queue.
            spent.add((item.kind, item.priority))
        return None

    def _chosen(self, reading: Reading, mover: Mover, spent: Collection[_Queue] = ()) -> WaitingItem | None:
        if mover.idle:
            return None
        waiting = [item for item in self._waiting(reading, mover) if (item.kind, item.priority) not in spent]
        return choose(waiting, reading.steady_us, self._bound_us)

    def _waiting(self, reading: Reading, mover: Mover) -> list[WaitingItem]:
        """Return the first item of each queue. Later items of a queue are never chosen before it, because they have
        the same priority and arrived later."""
        kinds: list[Kind] = ["task"] if self._tasks else []
        if self._tasks and self._may_review(mover):
            kinds.append("review")
        if self._mail:
            kinds.append("mail")
        if not kinds:
            return []
        # One query for all queues, because idle agents run it at every check.
        heads = (
            f"SELECT * FROM ({self._head(mover, kind, priority, _seen(kind, priority))}) AS {kind}_{place}"
            for kind in kinds
            for place, priority in enumerate(Priority)
        )
        rows = reading.all(" UNION ALL ".join(heads), self._parameters(reading, mover.name))
        return [
            WaitingItem(row["kind"], row["id"], Priority(row["priority"]), row["since_us"], row["number"])
            for row in rows
        ]

    def _claimed(
        self, writing: Writing, mover: Mover, queue: _Queue, token: str, lease_us: int
    ) -> TaskClaim | MailClaim | None:
        """Claim the first item of a queue that no other transaction has locked. Return None if there is no such
        item."""
        parameters, (kind, priority) = self._parameters(writing, mover.name), queue
        # Selection and claim are one statement, so that two processes never get the same task.
        if kind == "task":
            found = f"({writing.holding(self._head(mover, kind, priority, 'id'), 'skip')})"
            return claim_where(writing, found, parameters, mover.name, token, lease_us)
        row = writing.one(self._head(mover, kind, priority, "*"), parameters, hold="skip")
        if row is None:
            return None
        if kind == "mail":
            return take_mail_in(writing, row, mover.name, token, lease_us)
        return take_review_in(writing, self._policies, row["id"], mover.name, token, lease_us)

    def _may_review(self, mover: Mover) -> bool:
        return mover.trust is not None and self._policies[mover.trust].can_approve

    def _head(self, mover: Mover, kind: Kind, priority: Priority, columns: str) -> str:
        """Return the SQL query for the first item of a queue."""
        if kind == "mail":
            table, condition, order = "mails", _TO_READ, "position"
        else:
            table, order = "tasks", "queue"
            condition = f"({_TO_WORK}){self._here}" if kind == "task" else _TO_REVIEW + self._reviewable
            if kind == "task" and self._may_review(mover):
                condition += f" AND NOT {self._left_to_others}"
        return (
            f"SELECT {columns} FROM {table} WHERE priority = '{priority.value}' AND {condition}"
            f" ORDER BY {order} LIMIT 1"
        )

    def _parameters(self, reading: Reading, agent: str) -> dict[str, Value]:
        return {"agent": agent, "machine": machine_of(reading.holder), **self._named}


def _seen(kind: Kind, priority: Priority) -> str:
    """Return the columns that are needed to compare the first items of the queues."""
    number = "position" if kind == "mail" else "queue"
    return f"'{kind}' AS kind, '{priority.value}' AS priority, id, queued_us AS since_us, {number} AS number"
