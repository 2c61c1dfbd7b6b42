"""Work on the board as the team's processes do it, for tests that say which task: claimed by the statement that
`Allocation` claims with, handed in as `Reviews` and the trust policy have it."""

from __future__ import annotations

from contextlib import suppress

from artoo.agents.board.board import Board
from artoo.agents.board.reviews import Reviews
from artoo.agents.board.rows import TaskClaim, find
from artoo.agents.board.rules import SEED_POLICIES, Policies
from artoo.agents.board.worker import claim_where
from artoo.agents.storage.database import Database
from artoo.agents.storage.monotonic_clock import LEASE_SECONDS, seconds_us
from artoo.agents.storage.transaction import Writing
from artoo.contracts.agents import BoardState, BoardTask
from artoo.contracts.errors import ClaimLost, GovernanceRefused
from artoo.runtime.app.system import UuidIds


async def take(database: Database, task_id: str, agent: str) -> TaskClaim:
    """This task, which must be one that can be taken, claimed for the agent."""

    def work(writing: Writing) -> TaskClaim:
        assert find(writing, task_id).state in (BoardState.PENDING, BoardState.BLOCKED)
        token, lease_us = UuidIds().new(), seconds_us(LEASE_SECONDS)
        claim = claim_where(writing, ":task", {"task": task_id}, agent, token, lease_us)
        assert claim is not None
        return claim

    return await database.write(work)


async def hand_in(
    database: Database, claim: TaskClaim, summary: str, policies: Policies = SEED_POLICIES
) -> BoardTask:
    """In review, and completed where trust demands no review of it."""
    merges = Reviews(database, UuidIds(), policies)
    task, review = await merges.submit(claim, summary)
    return task if review else await merges.pass_by_policy(task.id, task.submission)


async def pass_what_waits(database: Database, policies: Policies = SEED_POLICIES) -> None:
    """The team's upkeep: what is in review and needs none, also of a process that was killed in between."""
    merges = Reviews(database, UuidIds(), policies)
    for task in await Board(database, UuidIds()).list({BoardState.REVIEW}):
        if await merges.passes(task.id):
            with suppress(GovernanceRefused, ClaimLost):  # another process was first
                await merges.pass_by_policy(task.id, task.submission)
