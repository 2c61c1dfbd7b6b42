"""A claim of a task in one statement, for an engine that can: PostgreSQL, where each trip to the store counts.

It does what `Allocation.next` does in a transaction of its own, with the same queries: who asks may work, the heads
of all queues are compared by attention, the first of the chosen queue that nobody holds is claimed in a new epoch,
the move is kept, and its record is laid down for the stream. When it gives nothing (a letter or a review comes
first, the agent is idle, others hold the queue) the transaction decides, and says why where that is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from artoo.agents.board.attention import Kind, Level, Waiting
from artoo.agents.storage.transaction import Value
from artoo.contracts.agents import Priority, TaskMoved, TrustLevel
from artoo.contracts.roles import Role


@dataclass(frozen=True, slots=True)
class AtOnce:
    """The statement, and what it needs beside what the engine knows (`:now`, `:holder`, `:store`, `:numbers`)."""

    sql: str
    parameters: Mapping[str, Value]


LOOK = "SELECT * FROM tasks WHERE holder = :holder AND claim = :claim"
"""What an earlier try has claimed whose answer did not come."""

_RECORD = """json_build_object('event', event, 'board_task', id, 'before', before, 'after', 'in_progress',
        'actor', CAST(:agent AS text), 'reason', reason, 'at',
        to_char(to_timestamp(us / 1000000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'by_policy', FALSE)"""
"""A `TaskMoved`; a test holds it against the one that the transaction lays down."""

_STATEMENT = """
WITH clock AS (SELECT coalesce(CAST(:now AS bigint), now_us()) AS us),
me AS (SELECT trust FROM agents WHERE name = :agent AND NOT paused AND stopped = ''),
chosen AS (
    SELECT kind, urgency
    FROM me, clock, (VALUES {ranks}) AS ranks (urgency, work, letters), LATERAL ({heads}) AS head
    ORDER BY CASE WHEN us - since_us >= :bound THEN {first} ELSE level END, since_us, number LIMIT 1
),
claimed AS (
    UPDATE tasks SET {claimed} FROM clock WHERE id = ({queue} FOR UPDATE SKIP LOCKED)
    RETURNING tasks.*, us
),
moved AS (
    SELECT *, CAST(:store AS text) || '-' || number AS event FROM (
        SELECT id, epoch, us, nextval('numbers') * :numbers AS number,
            CASE WHEN resumable THEN 'blocked' ELSE 'pending' END AS before,
            CASE WHEN resumable THEN 'taken up again' ELSE 'taken' END AS reason
        FROM claimed
    ) AS numbered
),
kept AS (
    INSERT INTO transitions (position, event, board_task, before, after, actor, reason, by_policy, at_us, epoch)
    SELECT number + 1, event, id, before, 'in_progress', :agent, reason, FALSE, us, epoch FROM moved
),
told AS (
    INSERT INTO events (role, subject, kind, payload, holder, since_us)
    SELECT '{role}', id, '{kind}', {record}, :holder, us FROM moved
)
SELECT * FROM claimed
"""


def statement(
    kinds: Collection[Kind], head: Callable[[Kind, str, str], str], approvers: Collection[TrustLevel]
) -> str:
    """Its text. `head`: the query for the head of a queue, of an expression for its priority and its columns."""
    may_review = ", ".join(f"'{level.value}'" for level in approvers)
    of_queue = {
        "task": "urgency",
        "review": f"CASE WHEN trust IN ({may_review}) THEN urgency END",
        "mail": "urgency",
    }
    ranks = (f"('{each.value}', {_level('task', each)}, {_level('mail', each)})" for each in Priority)
    return _STATEMENT.format(
        heads=" UNION ALL ".join(f"({head(kind, of_queue[kind], _seen(kind))})" for kind in kinds),
        ranks=", ".join(ranks),
        claimed=claimed(until="us + :lease", now="us"),
        queue=head("task", "(SELECT urgency FROM chosen WHERE kind = 'task')", "id"),
        first=int(Level.CRITICAL_TASK),
        role=Role.BOARD.value,
        kind=TaskMoved.kind(),
        record=_RECORD,
    )


def claimed(*, until: str, now: str) -> str:
    """What a claim sets in a row of `tasks`; `until` and `now` are expressions (µs)."""
    return (
        "state = 'in_progress', assignee = :agent, epoch = epoch + 1, claim = :claim, claimant = :agent,"
        f" holder = :holder, lease_us = {until}, updated_at_us = {now}"
    )


def turn(kind: Kind) -> str:
    """The columns that say whose turn it is among what waits with one priority."""
    return f"queued_us AS since_us, {'position' if kind == 'mail' else 'queue'} AS number"


def _seen(kind: Kind) -> str:
    return f"'{kind}' AS kind, {'letters' if kind == 'mail' else 'work'} AS level, {turn(kind)}"


def _level(kind: Kind, priority: Priority) -> int:
    return int(Waiting(kind, "", priority, 0, 0).level)
