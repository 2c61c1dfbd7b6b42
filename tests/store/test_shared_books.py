# pyright: reportPrivateUsage=false
"""The books in a shared store where they differ from a file: many writers, lost answers, a store that goes away."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import chain, repeat
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from artoo.agents.board.board import Board
from artoo.agents.board.claim_holders import is_dead, this_process
from artoo.agents.board.next_task import Allocation
from artoo.agents.board.rows import TaskClaim
from artoo.agents.identity.registry import Registry
from artoo.agents.mail.mailbox import Mailbox
from artoo.agents.mail.wake import Wake
from artoo.agents.storage.database import Database, Tell, failed
from artoo.agents.storage.transaction import Reading, Writing
from artoo.cluster.cluster import open_store
from artoo.cluster.machines import SEAT_SECONDS, Seats
from artoo.contracts.agents import OPERATOR, TrustLevel
from artoo.contracts.errors import ClaimLost, StoreAway
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.store.address import StoreAddress
from artoo.store.connecting import connect
from artoo.store.postgres import PostgresEngine
from artoo.testing import FakeClock
from board_work import hand_in, take
from postgres_server import Server, set_clock

IDS = UuidIds()
Connection = psycopg.Connection[dict[str, Any]]


async def opened(
    store: StoreAddress, machine: str, *, patience: float = 20.0, lasting: Tell | None = None
) -> Database:
    """The books, as a process of this machine has them."""
    return await open_store(store, holder=this_process(machine), patience=patience, lasting=lasting)


@asynccontextmanager
async def machine(store: StoreAddress, name: str, *, lasting: Tell | None = None) -> AsyncGenerator[Database]:
    """The same, with the agent `ada` known."""
    async with await opened(store, name, lasting=lasting) as database:
        await Registry(database).register("ada", OPERATOR, sha256="0" * 64, trust=TrustLevel.SENIOR)
        yield database


async def test_many_claim_and_each_task_is_one_machines(store: StoreAddress) -> None:
    """Six machines that claim at once get twenty-four tasks, each once, and find no more."""
    async with machine(store, "m0") as first:
        board = Board(first, IDS)
        tasks = [await board.add(f"task {number}", OPERATOR) for number in range(24)]
        databases = [await opened(store, f"m{number}") for number in range(6)]

        async def claim_all(database: Database) -> list[str]:
            got: list[str] = []
            while isinstance(claim := await Allocation(database, IDS, mail=False).next("ada"), TaskClaim):
                got.append(claim.task.id)
            return got

        shares = await asyncio.gather(*map(claim_all, databases))
        for database in databases:
            await database.close()
        assert sorted(one for share in shares for one in share) == sorted(task.id for task in tasks)


async def test_nothing_is_said_of_processes_of_other_machines(store: StoreAddress) -> None:
    """Another machine's process is never taken for dead, whatever its numbers; one of the same machine is."""
    process = this_process().split("/", 1)[1]
    assert not is_dead(f"other/4194303/{process}", this_process("here"))
    assert is_dead(f"here/4194303/{process}", this_process("here"))
    assert not is_dead(f"4194303/{process}", this_process("here"))


async def test_a_letter_is_answered_once_by_many(store: StoreAddress) -> None:
    """Letters that four machines answer at once have one answer each, and nothing is left."""
    async with machine(store, "m0") as first:
        sent = [await Mailbox(first, SystemClock(), IDS).send(OPERATOR, "ada", f"{n}") for n in range(12)]
        databases = [await opened(store, f"m{number}") for number in range(4)]

        async def answer_all(database: Database) -> None:
            mailbox = Mailbox(database, SystemClock(), IDS)
            while (claim := await mailbox.take("ada")) is not None:
                await mailbox.answer(claim, "yes")

        await asyncio.gather(*map(answer_all, databases))
        for database in databases:
            await database.close()
        answers = await Mailbox(first, SystemClock(), IDS).list(OPERATOR, "inbox")
        assert sorted(str(one.mail.in_reply_to) for one in answers) == sorted(mail.id for mail in sent)


async def test_one_name_sends_one_letter_from_many_machines(store: StoreAddress) -> None:
    """A letter that several send at once under one id is there once, and nobody sees an error."""
    async with machine(store, "m0") as first, await opened(store, "m1") as second:
        boxes = [Mailbox(database, SystemClock(), IDS) for database in (first, second, first, second)]
        sent = await asyncio.gather(*(box.send(OPERATOR, "ada", "hello", mail_id="one") for box in boxes))
        assert {mail.id for mail in sent} == {"one"}
        assert await boxes[0].unread("ada") == 1


async def test_transactions_that_hold_one_anothers_rows_are_tried_again(store: StoreAddress) -> None:
    """Two writers that take two rows in opposite orders both come through."""
    async with machine(store, "m0") as database:
        await Registry(database).register("bob", OPERATOR, sha256="0" * 64)

        def both(first: str, second: str) -> Callable[[Writing], None]:
            def work(writing: Writing) -> None:
                for name in (first, second):
                    writing.one("SELECT * FROM agents WHERE name = ?", (name,), hold="wait")
                    writing.run("UPDATE agents SET created_at_us = created_at_us + 1 WHERE name = ?", (name,))

            return work

        def counts(reading: Reading) -> list[int]:
            return [int(row["created_at_us"]) for row in reading.all("SELECT * FROM agents ORDER BY name")]

        before = await database.read(counts)
        orders = [("ada", "bob") if number % 2 else ("bob", "ada") for number in range(12)]
        await asyncio.gather(*(database.write(both(*order)) for order in orders))
        assert await database.read(counts) == [one + 12 for one in before]


def lost(self: PostgresEngine, connection: Connection) -> str | None:
    """Commit, and lose the answer with the connection."""
    COMMIT(self, connection)
    raise psycopg.OperationalError("the connection is lost")


def not_made(self: PostgresEngine, connection: Connection) -> str | None:
    """Lose the connection before the commit arrives."""
    connection.execute("ROLLBACK")
    raise psycopg.OperationalError("the connection is lost")


def ending(self: PostgresEngine, connection: Connection) -> str | None:
    """Commit, and hear that the server ends where the answer was due."""
    COMMIT(self, connection)
    raise psycopg.errors.AdminShutdown("terminating connection due to administrator command")


COMMIT = PostgresEngine._commit


def once(first: Callable[..., str | None]) -> Callable[[PostgresEngine, Connection], str | None]:
    """Commit by `first` for the first time, and as usual afterwards."""
    ways = chain([first], repeat(COMMIT))

    def commit(self: PostgresEngine, connection: Connection) -> str | None:
        return next(ways)(self, connection)

    return commit


@pytest.mark.parametrize("first", [lost, not_made, ending])
async def test_a_commit_without_an_answer_is_made_once(
    store: StoreAddress, monkeypatch: pytest.MonkeyPatch, first: Callable[..., str | None]
) -> None:
    """Whether it was made or not, its writer gets the result, and the task is there once."""
    async with machine(store, "m0") as database:
        monkeypatch.setattr(PostgresEngine, "_commit", once(first))
        task = await Board(database, IDS).add("once", OPERATOR)
        assert [one.id for one in await Board(database, IDS).list()] == [task.id]
    with connect(store) as connection:
        assert connection.execute("SELECT FROM receipts").fetchall() == []


async def test_a_write_that_a_crash_took_is_made_again_though_its_number_was_given_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing of a transaction reached the disk, and others committed under its number then: not lost."""
    server = Server.start(fsync="on", synchronous_commit="on", wal_writer_delay="10s")
    numbers = list[int]()
    number = "SELECT pg_current_xact_id()::text::bigint AS number"

    def crash(self: PostgresEngine, connection: Connection) -> str | None:
        row = connection.execute(number).fetchone()
        assert row is not None
        numbers.append(row["number"])
        server.end(signal.SIGQUIT)
        server.run()
        with connect(self.address) as other:
            while numbers[-1] <= numbers[0]:
                again = other.execute(number).fetchone()
                assert again is not None
                numbers.append(again["number"])
        return COMMIT(self, connection)

    try:
        async with machine(server.new_database(), "m0") as database:
            monkeypatch.setattr(PostgresEngine, "_commit", once(crash))
            task = await Board(database, IDS).add("once", OPERATOR)
            assert [one.id for one in await Board(database, IDS).list()] == [task.id]
            assert numbers[0] in numbers[1:]  # else this has shown nothing
    finally:
        server.stop()


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
async def test_an_earlier_try_that_is_still_open_is_waited_for(store: StoreAddress, end: str) -> None:
    """Its end says whether the write was made; a first try that arrives after the second one is refused."""
    receipt, engine = uuid4(), PostgresEngine(store, failed)
    insert, waits = "INSERT INTO receipts (token) VALUES (%s)", "SELECT FROM pg_locks WHERE NOT granted"
    with connect(store) as slow, connect(store) as looking:
        slow.execute("BEGIN")
        slow.execute(insert, (receipt,))
        trying = asyncio.create_task(asyncio.to_thread(engine.write, lambda query: query.first_time(receipt, ())))
        while looking.execute(waits).fetchone() is None:  # noqa: ASYNC110 (the server's state)
            await asyncio.sleep(0.01)
        slow.execute(end.encode())
        assert await trying is (end == "ROLLBACK")
        with pytest.raises(psycopg.errors.UniqueViolation):
            slow.execute(insert, (receipt,))
    engine.close()


async def test_who_waits_is_woken_by_another_machine(store: StoreAddress) -> None:
    """A letter from another machine ends the wait long before the poll would."""
    clock = SystemClock()
    async with machine(store, "m0") as here, await opened(store, "m1") as there, asyncio.timeout(60):
        wake = Wake(here, clock, poll_seconds=3_600)
        mark = await wake.mark("ada")
        waiting = asyncio.create_task(wake.wait("ada", mark, 3_600))
        await Mailbox(there, clock, IDS).send(OPERATOR, "ada", "wake up")
        assert await waiting


async def test_an_agents_heart_beats_on_one_machine(store: StoreAddress) -> None:
    """Of two machines with the same agent one has its seat; when that is gone, the other takes it."""
    clock = FakeClock()
    async with (
        await open_store(store, holder="a/1/2/3/4", clock=clock) as one,
        await open_store(store, holder="b/1/2/3/4", clock=clock) as other,
    ):
        assert await Seats(one).take("ada")
        assert not await Seats(other).take("ada")
        clock.advance(SEAT_SECONDS / 2)
        assert await Seats(one).take("ada"), "it renews its own"
        clock.advance(SEAT_SECONDS - 1)
        assert not await Seats(other).take("ada")
        clock.advance(2)
        assert await Seats(other).take("ada")
        assert not await Seats(one).take("ada"), "it has come back too late"
        await Seats(other).leave()
        assert await Seats(one).take("ada")


async def test_what_anybody_may_do_does_not_wait_for_a_machine_that_is_gone(store: StoreAddress) -> None:
    """Once its agent's seat ran out, what it had begun is begun anew elsewhere; what is that agent's own waits, and
    so does everything on the agent's own machine."""
    async with machine(store, "m0") as gone, machine(store, "m1") as other:
        await Registry(other).register("bob", OPERATOR, sha256="0" * 64, trust=TrustLevel.SENIOR)
        board, next_of = Board(other, IDS), Allocation(other, IDS).next
        anybodys, adas = await board.add("anybody's", OPERATOR), await board.add("ada's", OPERATOR, assignee="ada")
        assert await Seats(gone).take("ada")
        held, _ = [await take(gone, one.id, "ada") for one in (anybodys, adas)]
        await Board(gone, IDS).work.began(held, "a run")
        set_clock(store, 40)
        assert await Seats(gone).take("ada")
        set_clock(store, 70)  # claims are over, the seat is not
        await board.work.recover()
        assert await next_of("bob") is None
        set_clock(store, 3_600)
        await Board(gone, IDS).work.recover()
        assert await next_of("bob") is None
        await board.work.recover()
        claim = await next_of("bob")
        assert isinstance(claim, TaskClaim)
        assert (claim.task.id, claim.task.run, claim.epoch) == (anybodys.id, None, 2)
        assert await next_of("bob") is None
        with pytest.raises(ClaimLost):
            await hand_in(gone, held, "late")


async def test_an_interrupted_task_that_is_given_to_anybody_is_taken_by_anybody(store: StoreAddress) -> None:
    """The operator takes it from its agent: who comes first begins it anew."""
    async with machine(store, "m0") as database:
        await Registry(database).register("bob", OPERATOR, sha256="0" * 64, trust=TrustLevel.SENIOR)
        board = Board(database, IDS)
        task = await board.add("a task", OPERATOR, assignee="ada")
        await board.work.give_back(await take(database, task.id, "ada"), "stopped")
        await board.assign(task.id, None, OPERATOR)
        claim = await Allocation(database, IDS).next("bob")
        assert isinstance(claim, TaskClaim) and claim.task.id == task.id


async def test_work_on_a_project_is_taken_where_it_is(store: StoreAddress) -> None:
    """A machine claims tasks of no project and of its own projects; a review only where the files are."""
    async with machine(store, "m0") as here, await opened(store, "m1") as there:
        board = Board(here, IDS)
        site = await board.add("the site", OPERATOR, project="git.example.org/site")
        plain = await board.add("anything", OPERATOR)
        without = Allocation(there, IDS, projects=[])
        having = Allocation(there, IDS, projects=["git.example.org/site", "/srv/other"])
        claim = await without.next("ada")
        assert isinstance(claim, TaskClaim)
        assert claim.task.id == plain.id
        assert await without.next("ada") is None
        claim = await having.next("ada")
        assert isinstance(claim, TaskClaim)
        assert claim.task.id == site.id


@pytest.mark.usefixtures("postgres")  # skipped where there is none
async def test_a_store_that_goes_away_is_waited_for() -> None:
    """The server is killed and started again: who stays waits and is told both; a command gives up."""
    server, told, away = Server.start(), list[str](), asyncio.Event()
    try:
        address = server.new_database()

        def tell(sentence: str) -> None:
            told.append(sentence)
            away.set()

        async with machine(address, "m0", lasting=tell) as database, asyncio.timeout(120):
            server.end(signal.SIGQUIT)
            writing = asyncio.create_task(Board(database, IDS).add("meanwhile", OPERATOR))
            await away.wait()
            with pytest.raises(StoreAway, match="Check that it runs"):
                await opened(address, "m1", patience=0.1)
            assert not writing.done()
            server.run()
            assert (await writing).text == "meanwhile"
            assert [one.text for one in await Board(database, IDS).list()] == ["meanwhile"]
    finally:
        server.stop()
    assert len(told) == 2
    assert "Nothing new is begun" in told[0]
    assert "can be used again" in told[1]


@pytest.mark.parametrize(
    ("table", "verb"),
    [
        ("transitions", "UPDATE {} SET actor = 'nobody'"),
        ("transitions", "TRUNCATE {}"),
        ("task_changes", "DELETE FROM {}"),
    ],
)
async def test_the_audit_trail_is_append_only(store: StoreAddress, table: str, verb: str) -> None:
    """The store itself refuses to change or drop what happened, to its owner too."""
    async with machine(store, "m0") as database:
        task = await Board(database, IDS).add("x", OPERATOR)
        await Board(database, IDS).set_complexity(task.id, None, OPERATOR)
    with connect(store) as connection, pytest.raises(psycopg.errors.RestrictViolation, match="kept as they were"):
        connection.execute(verb.format(table).encode())
