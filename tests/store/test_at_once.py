"""The claim in one statement does what the claim in a transaction does, and never another thing."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any, cast

import psycopg
import pytest

from artoo.agents.board.board import Board
from artoo.agents.board.claim_sql import AtOnce
from artoo.agents.board.next_task import Allocation
from artoo.agents.board.rows import TaskClaim
from artoo.agents.identity.registry import Registry
from artoo.agents.mail.mailbox import Mailbox
from artoo.agents.storage.postgres import SharedDatabase
from artoo.agents.storage.transaction import Reading, Row
from artoo.contracts.agents import OPERATOR, BoardTask, Complexity, Priority, TaskMoved, TrustLevel
from artoo.contracts.errors import ActorRefused
from artoo.runtime.app.system import UuidIds
from artoo.store.address import StoreAddress
from artoo.testing import FakeClock
from board_work import hand_in, take

IDS = UuidIds()
HOUR = 3_600.0


class Slowly(SharedDatabase):
    """Books without the statement: every claim is a transaction."""

    async def claim_at_once(self, claiming: AtOnce) -> Row | None:
        return None


class Counting(SharedDatabase):
    """Books that count how many claims the statement made."""

    made = 0

    async def claim_at_once(self, claiming: AtOnce) -> Row | None:
        row = await super().claim_at_once(claiming)
        type(self).made += row is not None
        return row


Kept = dict[str, object]

OWN = {"id", "queue", "queued_us", "claim", "position", "event", "board_task", "subject", "payload", "sequence"}
"""Columns that are each claim's own."""


async def kept(database: SharedDatabase, task: BoardTask) -> list[Kept]:
    """Everything that the books have of a task after it was claimed, but for what is each claim's own."""

    def latest(reading: Reading, query: str) -> Kept:
        row = reading.one(query, (task.id,))
        assert row is not None
        return cast("Kept", row)

    def work(reading: Reading) -> list[Kept]:
        transition = latest(reading, "SELECT * FROM transitions WHERE board_task = ? ORDER BY position DESC")
        event = latest(reading, "SELECT * FROM events WHERE subject = ? ORDER BY sequence DESC")
        moved = TaskMoved.model_validate_json(str(event["payload"]))
        assert (moved.event, moved.board_task) == (transition["event"], task.id)
        assert moved.event.rpartition("-")[2] == str(int(str(transition["position"])) - 1)
        rows = [latest(reading, "SELECT * FROM tasks WHERE id = ?"), transition, event, moved.model_dump()]
        return [{name: value for name, value in row.items() if name not in OWN} for row in rows]

    return await database.read(work)


async def prepared(database: SharedDatabase) -> None:
    registry = Registry(database)
    await registry.register("ada", OPERATOR, sha256="0" * 64, trust=TrustLevel.STANDARD)
    await registry.register("sen", OPERATOR, sha256="0" * 64, trust=TrustLevel.SENIOR)


@pytest.mark.parametrize("resumed", [False, True])
async def test_both_ways_keep_the_same(store: StoreAddress, resumed: bool) -> None:
    """Row, transition and record of a claim are the same, of a new task and of one that is taken up again."""
    clock = FakeClock()
    found: list[list[Kept]] = []
    for kind in (Counting, Slowly):
        async with await kind.open(store, holder="m/1/2/3/4", clock=clock) as database:
            await prepared(database)
            task = await Board(database, IDS).add("x", OPERATOR, complexity=Complexity.SIMPLE)
            if resumed:
                first = await take(database, task.id, "ada")
                await Board(database, IDS).work.give_back(first, "interrupted")
            claim = await Allocation(database, IDS).next("ada")
            assert isinstance(claim, TaskClaim)
            assert (claim.task.id, claim.resumed, claim.epoch) == (task.id, resumed, 1 + resumed)
            found.append(await kept(database, task))
            await hand_in(database, claim, "done")
    assert found[0] == found[1]
    assert Counting.made > 0


@pytest.mark.parametrize("seed", range(6))
async def test_the_statement_chooses_as_attention_does(store: StoreAddress, seed: int) -> None:
    """Over tasks and letters of all urgencies and ages, each claim is what `peek`, the pure function, names."""
    chance, clock = random.Random(seed), FakeClock()
    async with await SharedDatabase.open(store, holder="m/1/2/3/4", clock=clock) as database:
        await prepared(database)
        board, mailbox = Board(database, IDS), Mailbox(database, clock, IDS)
        for number in range(24):
            clock.advance(chance.choice([0.0, 1.0, 400.0]))
            urgency = chance.choice(list(Priority))
            if chance.random() < 0.4:
                await mailbox.send(OPERATOR, "sen", f"letter {number}", priority=urgency)
            else:
                to = chance.choice([None, "sen", "ada"])
                task = await board.add(f"{number}", OPERATOR, priority=urgency, assignee=to)
                if to == "ada" and chance.random() < 0.7:
                    await hand_in(database, await take(database, task.id, "ada"), "to be reviewed")
        clock.advance(chance.choice([0.0, HOUR / 2, HOUR]))
        for agent in ("sen", "ada"):
            allocation = Allocation(database, IDS)
            while (named := await allocation.peek(agent)) is not None:
                claim = await allocation.next(agent)
                assert claim is not None
                assert named.id == (claim.task.id if isinstance(claim, TaskClaim) else claim.mail.id)
            assert await allocation.next(agent) is None


async def test_who_may_not_work_gets_nothing_at_once(store: StoreAddress) -> None:
    """A paused agent gets nothing, an unknown one is refused, other projects' tasks stay."""
    async with await SharedDatabase.open(store, holder="m/1/2/3/4") as database:
        await prepared(database)
        await Board(database, IDS).add("x", OPERATOR, project="git.example.org/site")
        await Registry(database).pause("ada", OPERATOR)
        assert await Allocation(database, IDS).next("ada") is None
        assert await Allocation(database, IDS, projects=["git.example.org/other"]).next("sen") is None
        with pytest.raises(ActorRefused, match="no agent 'nobody'"):
            await Allocation(database, IDS).next("nobody")
        assert await Allocation(database, IDS, projects=["git.example.org/site"]).next("sen") is not None


async def test_a_claim_whose_answer_is_lost_is_found_again(
    store: StoreAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server makes the claim and the connection breaks: the next try finds it, and claims no second task."""
    async with await SharedDatabase.open(store, holder="m/1/2/3/4") as database:
        await prepared(database)
        for number in range(2):
            await Board(database, IDS).add(f"{number}", OPERATOR)
        execute, broken = psycopg.AsyncConnection[Any].execute, list[bool]()

        async def breaking(
            connection: psycopg.AsyncConnection[Any], query: bytes, *given: Any, prepare: bool | None = None
        ) -> psycopg.AsyncCursor[Any]:
            result = await execute(connection, query, *given, prepare=prepare)
            if b"WITH clock" in query and not broken:
                broken.append(True)
                with suppress(OSError):
                    await connection.close()
                raise psycopg.OperationalError("the connection is lost")
            return result

        monkeypatch.setattr(psycopg.AsyncConnection, "execute", breaking)
        claim = await Allocation(database, IDS).next("ada")
        assert broken and isinstance(claim, TaskClaim)
        held = await database.read(
            lambda reading: reading.count("SELECT count(*) FROM tasks WHERE claim IS NOT NULL")
        )
        assert held == 1
