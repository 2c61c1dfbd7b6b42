"""Gives an agent its next piece of work: the attention controller over board and mailbox, in one transaction.

What is chosen is claimed in the same transaction, so that two processes never get the same.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from artoo.agents.attention import BOUND_SECONDS, Waiting, choose
from artoo.agents.board_rows import TaskClaim, mover_of
from artoo.agents.database import Database
from artoo.agents.governance import SEED_POLICIES, Mover, Policies
from artoo.agents.holders import machine_of
from artoo.agents.mail_rows import MailClaim, find_mail
from artoo.agents.mailbox import take_mail_in
from artoo.agents.reviews import take_review_in
from artoo.agents.steady import seconds_us
from artoo.agents.transaction import Reading, Value, Writing
from artoo.agents.work import LEASE_SECONDS, take_in
from artoo.contracts.agents import Priority
from artoo.ports.ids import Ids

_Kind = Literal["task", "review"]
_Queue = tuple[Literal["task", "review", "mail"], Priority]

_TO_WORK = (
    "(state = 'pending' AND (assignee = :agent OR assignee IS NULL))"
    " OR (state = 'blocked' AND resumable AND assignee = :agent)"
)
_TO_REVIEW = (
    "state = 'review' AND (claimant IS NULL OR claimant = :agent) AND claim IS NULL"
    " AND (reviewer IS NULL OR reviewer = :agent) AND coalesce(assignee, '') <> :agent"
    " AND made_on IN ('', :machine)"
)


class Allocation:
    """See `attention`. `bound_seconds`: how long anything waits before it goes by arrival alone."""

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
        """`tasks` and `mail`: whether the agent looks at the board and the mailbox at all. `projects`: whose tasks
        can be worked on here, beside those of no project; None: all."""
        self._database = database
        self._ids = ids
        self._policies = policies
        self._bound_us = seconds_us(bound_seconds)
        self._tasks = tasks
        self._mail = mail
        self._named = {f"project{number}": name for number, name in enumerate(sorted(projects or ()))}
        names = ", ".join(["''", *(f":{name}" for name in self._named)])
        self._here = "" if projects is None else f" AND project IN ({names})"

    async def peek(self, agent: str) -> Waiting | None:
        """What the agent would turn to now; None: nothing, or it is paused. Changes nothing."""
        return await self._database.read(lambda reading: self._chosen(reading, agent))

    async def next(self, agent: str, *, lease_seconds: float = LEASE_SECONDS) -> TaskClaim | MailClaim | None:
        """The agent's next piece of work, claimed; None: nothing, or it is paused.

        A TaskClaim whose task is in review is a review. Raises ActorRefused when there is no such agent.
        """
        token, lease_us = self._ids.new(), seconds_us(lease_seconds)

        def work(writing: Writing) -> TaskClaim | MailClaim | None:
            spent: set[_Queue] = set()
            while (item := self._chosen(writing, agent, spent)) is not None:
                found = self._taken_hold_of(writing, agent, item)
                if found is None:  # others hold all that is left of this queue
                    spent.add((item.kind, item.priority))
                elif item.kind == "mail":
                    return take_mail_in(writing, find_mail(writing, found), agent, token, lease_us)
                elif item.kind == "review":
                    return take_review_in(writing, self._policies, found, agent, token, lease_us)
                else:
                    return take_in(writing, found, agent, token, lease_us)
            return None

        return await self._database.write(work)

    def _chosen(self, reading: Reading, agent: str, spent: Collection[_Queue] = ()) -> Waiting | None:
        mover = mover_of(reading, agent)
        if mover.idle:
            return None
        waiting = [item for item in self._waiting(reading, mover) if (item.kind, item.priority) not in spent]
        return choose(waiting, reading.steady_us, self._bound_us)

    def _waiting(self, reading: Reading, mover: Mover) -> list[Waiting]:
        """The head of each queue: those behind it came later and have the same priority."""
        found: list[Waiting] = []
        for priority in Priority:
            if self._tasks:
                found += self._head_of_tasks(reading, "task", mover.name, priority)
                if mover.trust is not None and self._policies[mover.trust].can_approve:
                    found += self._head_of_tasks(reading, "review", mover.name, priority)
            if self._mail:
                found += _head_of_mail(reading, mover.name, priority)
        return found

    def _head_of_tasks(self, reading: Reading, kind: _Kind, agent: str, priority: Priority) -> list[Waiting]:
        parameters = self._parameters(reading, agent, priority)
        rows = reading.all(self._queue("id, queued_us, queue", kind), parameters)
        return [Waiting(kind, row["id"], priority, row["queued_us"], row["queue"]) for row in rows]

    def _taken_hold_of(self, writing: Writing, agent: str, item: Waiting) -> str | None:
        """The first of the item's queue that no other transaction holds, now held by this one; None: none."""
        query = _letters("id") if item.kind == "mail" else self._queue("id", item.kind)
        row = writing.one(query, self._parameters(writing, agent, item.priority), hold="skip")
        return None if row is None else str(row["id"])

    def _queue(self, columns: str, kind: _Kind) -> str:
        """The head of a queue of tasks."""
        condition = f"({_TO_WORK}){self._here}" if kind == "task" else _TO_REVIEW
        return f"SELECT {columns} FROM tasks WHERE priority = :priority AND {condition} ORDER BY queue LIMIT 1"

    def _parameters(self, reading: Reading, agent: str, priority: Priority) -> dict[str, Value]:
        return {"priority": priority.value, "agent": agent, "machine": machine_of(reading.holder), **self._named}


def _head_of_mail(reading: Reading, agent: str, priority: Priority) -> list[Waiting]:
    rows = reading.all(_letters("id, queued_us, position"), {"priority": priority.value, "agent": agent})
    return [Waiting("mail", row["id"], priority, row["queued_us"], row["position"]) for row in rows]


def _letters(columns: str) -> str:
    """The head of a queue of letters."""
    return (
        f"SELECT {columns} FROM mails WHERE recipient = :agent AND partition = 'inbox' AND claim IS NULL"
        " AND priority = :priority ORDER BY position LIMIT 1"
    )
