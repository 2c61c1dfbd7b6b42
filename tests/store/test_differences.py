"""Differences in the store: whose they are, when they are whole, who may apply them, when they go."""

from __future__ import annotations

import hashlib
import io
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import psycopg
import pytest

from artoo.agents.board.board import Board
from artoo.agents.board.claim_holders import this_process
from artoo.agents.board.next_task import Allocation
from artoo.agents.board.reviews import Reviews
from artoo.agents.board.rows import TaskClaim
from artoo.agents.board.rules import SEED_POLICIES
from artoo.agents.identity.registry import Registry
from artoo.agents.storage.database import Database
from artoo.cluster.cluster import open_store
from artoo.cluster.submission_bundles import Differences
from artoo.contracts.agents import OPERATOR, BoardState, BoardTask, Complexity, TrustLevel
from artoo.contracts.errors import ActivityStoreError, ClaimLost
from artoo.runtime.app.system import UuidIds
from artoo.store.address import StoreAddress
from artoo.store.opened import opened
from artoo.store.parcels import PIECE_BYTES, receive, send, sha256_of
from board_work import take

IDS = UuidIds()
SITE = "git.example.org/site"


@asynccontextmanager
async def machine(store: StoreAddress, name: str) -> AsyncGenerator[Database]:
    """The books as a machine has them, with a beginner and a senior."""
    async with await open_store(store, holder=this_process(name)) as database:
        for agent, trust in (("ada", TrustLevel.PROBATION), ("cyd", TrustLevel.SENIOR)):
            await Registry(database).register(agent, OPERATOR, sha256="0" * 64, trust=trust)
        yield database


async def handed_in(database: Database) -> BoardTask:
    """A submission of this machine's."""
    board = Board(database, IDS)
    task = await board.add("the site", OPERATOR, assignee="ada", complexity=Complexity.COMPLEX, project=SITE)
    submitted, review = await Reviews(database, UuidIds(), SEED_POLICIES).submit(
        await take(database, task.id, "ada"), "done"
    )
    assert review
    return submitted


async def announced(database: Database, task: BoardTask, *, stays: str = "") -> bool:
    return await Differences(database).announce(
        task.id, task.submission, stays=stays, size=3, sha256="f" * 64, dossier="{}", review="{}"
    )


def counted(store: StoreAddress) -> tuple[int, int]:
    """How many differences and pieces there are."""
    with psycopg.connect(store.url) as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM artoo.differences), (SELECT count(*) FROM artoo.difference_pieces)"
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


async def test_a_stale_machine_sends_and_applies_nothing(store: StoreAddress) -> None:
    """Whose submission was sent back and done again elsewhere can announce, complete and apply nothing of it."""
    async with machine(store, "m0") as slow, machine(store, "m1") as quick:
        old = await handed_in(slow)
        assert await announced(slow, old)
        await Board(quick, IDS).reviews.reject(old.id, OPERATOR, "again")
        assert not await announced(slow, old)  # it waits no more
        claim = await take(quick, old.id, "ada")
        new, _ = await Reviews(quick, UuidIds(), SEED_POLICIES).submit(claim, "done again")
        assert counted(store) == (0, 0)  # the later one replaces it
        assert not await announced(slow, old)
        assert not await announced(slow, new)  # another machine's
        assert not await Differences(slow).whole(old.id, 1, "f" * 64)
        with pytest.raises(ClaimLost, match="not waiting any more"):
            await Differences(slow).take(old.id, 1)
        assert await announced(quick, new)


async def test_seniors_elsewhere_find_what_is_whole_and_travels(store: StoreAddress) -> None:
    """A review is offered on the machine that made it at once, on others that have the project when all of it is
    there, and nowhere else."""
    async with machine(store, "m0") as maker, machine(store, "m1") as other:
        task = await handed_in(maker)
        having, without = Allocation(other, IDS, projects=[SITE]), Allocation(other, IDS, projects=["else"])
        at_home = Allocation(maker, IDS, projects=[])
        assert (item := await at_home.peek("cyd")) is not None and item.id == task.id
        assert await having.peek("cyd") is None
        await announced(maker, task)
        assert await having.peek("cyd") is None
        await Differences(maker).whole(task.id, 1, "f" * 64)
        assert await without.peek("cyd") is None
        claim = await having.next("cyd")
        assert isinstance(claim, TaskClaim) and claim.task.state is BoardState.REVIEW


async def test_what_stays_is_offered_to_nobody_else(store: StoreAddress) -> None:
    """A difference that cannot travel is reviewed where it is."""
    async with machine(store, "m0") as maker, machine(store, "m1") as other:
        task = await handed_in(maker)
        assert await announced(maker, task, stays="it is too large")
        assert await Allocation(other, IDS, projects=[SITE]).peek("cyd") is None
        kept = await Differences(other).of(task.id, 1)
        assert kept is not None and kept.stays == "it is too large" and not kept.is_here


async def test_one_machine_applies(store: StoreAddress) -> None:
    """Who takes it first may apply it, and take it again; the other is told who, until it is let go."""
    async with machine(store, "m0") as maker, machine(store, "m1") as other:
        task = await handed_in(maker)
        await Differences(other).take(task.id, 1)
        await Differences(other).take(task.id, 1)
        with pytest.raises(ClaimLost, match="being applied on m1"):
            await Differences(maker).take(task.id, 1)
        await Differences(maker).let_go(task.id, 1)  # it is not its to let go
        with pytest.raises(ClaimLost):
            await Differences(maker).take(task.id, 1)
        await Differences(other).let_go(task.id, 1)
        await Differences(maker).take(task.id, 1)


@pytest.mark.parametrize("end", ["approve", "cancel"])
async def test_what_is_settled_goes(store: StoreAddress, end: str) -> None:
    """With the move that settles a task its difference and all pieces of it are gone from the store."""
    async with machine(store, "m0") as maker:
        task, board = await handed_in(maker), Board(maker, IDS)
        await announced(maker, task)
        with opened(store, "write to") as connection:
            send(connection, task.id, 1, io.BytesIO(b"abc"))
        assert counted(store) == (1, 1)
        if end == "approve":
            await board.reviews.approve(task.id, OPERATOR)
        else:
            await board.reviews.reject(task.id, OPERATOR, "no")
            assert counted(store) == (1, 1)  # the next attempt goes on with it
            await board.cancel(task.id, OPERATOR, "no more")
        assert counted(store) == (0, 0)


async def test_a_cut_upload_goes_on(store: StoreAddress) -> None:
    """Pieces that are there are not sent again, wrong and surplus ones are mended; only the whole is received."""
    content = bytes(range(256)) * (3 * PIECE_BYTES // 256) + b"end"
    async with machine(store, "m0") as maker:
        task = await handed_in(maker)
        await announced(maker, task)
    size, sha256 = sha256_of(io.BytesIO(content))
    assert (size, sha256) == (len(content), hashlib.sha256(content).hexdigest())
    with opened(store, "use") as connection:
        send(connection, task.id, 1, io.BytesIO(content[: 2 * PIECE_BYTES] + b"x" * (2 * PIECE_BYTES + 9)))
        before = connection.execute(b"SELECT number, xmin::text AS x FROM difference_pieces ORDER BY 1").fetchall()
        with pytest.raises(ActivityStoreError, match="not whole"):
            receive(connection, task.id, 1, sha256, io.BytesIO())
        send(connection, task.id, 1, io.BytesIO(content))
        after = connection.execute(b"SELECT number, xmin::text AS x FROM difference_pieces ORDER BY 1").fetchall()
        assert len(before) == 5 and len(after) == 4
        assert after[:2] == before[:2] and after[2] != before[2]
        into = io.BytesIO()
        receive(connection, task.id, 1, sha256, into)
        assert into.read() == content
