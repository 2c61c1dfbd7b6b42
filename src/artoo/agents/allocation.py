"""Gives an agent its next piece of work: the attention controller over board and mailbox, in one transaction.

What is chosen is claimed in the same transaction, so that two processes never get the same.
"""

from __future__ import annotations

from typing import Literal

from artoo.agents.attention import BOUND_SECONDS, Waiting, choose
from artoo.agents.board_rows import TaskClaim, mover_of
from artoo.agents.database import Database
from artoo.agents.governance import SEED_POLICIES, Mover, Policies
from artoo.agents.mail_rows import MailClaim, find_mail
from artoo.agents.mailbox import take_mail_in
from artoo.agents.reviews import take_review_in
from artoo.agents.steady import seconds_us
from artoo.agents.transaction import Reading, Value, Writing
from artoo.agents.work import LEASE_SECONDS, take_in
from artoo.contracts.agents import Priority
from artoo.ports.ids import Ids

_Kind = Literal["task", "review"]

_TO_WORK = (
    "(state = 'pending' AND (assignee = :agent OR assignee IS NULL))"
    " OR (state = 'blocked' AND resumable AND assignee = :agent)"
)
_TO_REVIEW = (
    "state = 'review' AND (claimant IS NULL OR claimant = :agent) AND claim IS NULL"
    " AND (reviewer IS NULL OR reviewer = :agent) AND assignee IS NOT :agent"
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
    ) -> None:
        """`tasks` and `mail`: whether the agent looks at the board and the mailbox at all."""
        self._database = database
        self._ids = ids
        self._policies = policies
        self._bound_us = seconds_us(bound_seconds)
        self._tasks = tasks
        self._mail = mail

    async def peek(self, agent: str) -> Waiting | None:
        """What the agent would turn to now; None: nothing, or it is paused. Changes nothing."""
        return await self._database.read(lambda reading: self._chosen(reading, agent))

    async def next(self, agent: str, *, lease_seconds: float = LEASE_SECONDS) -> TaskClaim | MailClaim | None:
        """The agent's next piece of work, claimed; None: nothing, or it is paused.

        A TaskClaim whose task is in review is a review. Raises ActorRefused when there is no such agent.
        """
        token, lease_us = self._ids.new(), seconds_us(lease_seconds)

        def work(writing: Writing) -> TaskClaim | MailClaim | None:
            item = self._chosen(writing, agent)
            if item is None:
                return None
            if item.kind == "mail":
                return take_mail_in(writing, find_mail(writing, item.id), agent, token, lease_us)
            if item.kind == "review":
                return take_review_in(writing, self._policies, item.id, agent, token, lease_us)
            return take_in(writing, item.id, agent, token, lease_us)

        return await self._database.write(work)

    def _chosen(self, reading: Reading, agent: str) -> Waiting | None:
        mover = mover_of(reading, agent)
        if mover.idle:
            return None
        return choose(self._waiting(reading, mover), reading.steady_us, self._bound_us)

    def _waiting(self, reading: Reading, mover: Mover) -> list[Waiting]:
        """The head of each queue: those behind it came later and have the same priority."""
        found: list[Waiting] = []
        for priority in Priority:
            if self._tasks:
                found += _head_of_tasks(reading, "task", _TO_WORK, mover.name, priority)
                if mover.trust is not None and self._policies[mover.trust].can_approve:
                    found += _head_of_tasks(reading, "review", _TO_REVIEW, mover.name, priority)
            if self._mail:
                found += _head_of_mail(reading, mover.name, priority)
        return found


def _head_of_tasks(reading: Reading, kind: _Kind, condition: str, agent: str, priority: Priority) -> list[Waiting]:
    rows = reading.all(
        f"SELECT id, queued_us, queue FROM tasks WHERE priority = :priority AND ({condition})"
        " ORDER BY queue LIMIT 1",
        {"priority": priority.value, "agent": agent},
    )
    return [Waiting(kind, row["id"], priority, row["queued_us"], row["queue"]) for row in rows]


def _head_of_mail(reading: Reading, agent: str, priority: Priority) -> list[Waiting]:
    parameters: tuple[Value, ...] = (agent, priority.value)
    rows = reading.all(
        "SELECT id, queued_us, position FROM mails WHERE recipient = ? AND partition = 'inbox' AND claim IS NULL"
        " AND priority = ? ORDER BY position LIMIT 1",
        parameters,
    )
    return [Waiting("mail", row["id"], priority, row["queued_us"], row["position"]) for row in rows]
