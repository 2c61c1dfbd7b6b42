# pyright: reportPrivateUsage=false
"""The books in a shared store where they differ from a file: many writers, lost answers, a store that goes away."""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from artoo.agents.board.board import Board
from artoo.agents.board.claim_holders import is_dead, this_process
from artoo.agents.board.next_task import Allocation
from artoo.agents.board.rows import TaskClaim
from artoo.agents.identity.registry import Registry
from artoo.agents.mail.mailbox import Mailbox
from artoo.agents.mail.wake import Wake
from artoo.agents.storage.transaction import Reading, Writing
from artoo.cluster import postgres as shared
from artoo.cluster.machines import SEAT_SECONDS, Seats
from artoo.cluster.pg_transaction import LEAVE, SharedEngine
from artoo.cluster.postgres import SharedDatabase, settle
from artoo.contracts.agents import OPERATOR, TrustLevel
from artoo.contracts.errors import ClaimLost, StoreAway
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.store.address import StoreAddress
from artoo.store.connecting import connect
from artoo.testing import FakeClock
from board_work import hand_in, take
from postgres_server import Server, set_clock

IDS = UuidIds()
Connection = psycopg.Connection[dict[str, Any]]


async def opened(store: StoreAddress, machine: str, *, patience: float = 20.0) -> SharedDatabase:
    """The books, as a process of this machine has them."""
    return await SharedDatabase.open(store, holder=this_process(machine), patience=patience)


@asynccontextmanager
async def machine(store: StoreAddress, name: str, *, patience: float = 20.0) -> AsyncGenerator[SharedDatabase]:
    """The same, with the agent `ada` known."""
    async with await opened(store, name, patience=patience) as database:
        await Registry(database).register("ada", OPERATOR, sha256="0" * 64, trust=TrustLevel.SENIOR)
        yield database


async def test_many_claim_and_each_task_is_one_machines(store: StoreAddress) -> None:
    """Six machines that claim at once get sixty tasks, each once, and find no more."""
    async with machine(store, "m0") as first:
        board = Board(first, IDS)
        tasks = [await board.add(f"task {number}", OPERATOR) for number in range(60)]
        databases = [await opened(store, f"m{number}") for number in range(6)]

        async def claim_all(database: SharedDatabase) -> list[str]:
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
        sent = [await Mailbox(first, SystemClock(), IDS).send(OPERATOR, "ada", f"{n}") for n in range(24)]
        databases = [await opened(store, f"m{number}") for number in range(4)]

        async def answer_all(database: SharedDatabase) -> None:
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


async def test_a_commit_without_an_answer_is_asked_after(
    store: StoreAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection dies with the answer to a commit: what was written is there once, and its writer knows it."""
    committing, lost = SharedDatabase._commit, list[UUID]()

    def cut(
        self: SharedDatabase, connection: Connection, engine: SharedEngine, token: UUID, result: object
    ) -> None:
        if lost:
            committing(self, connection, engine, token, result)
            return
        lost.append(token)
        committing(self, connection, engine, token, result)
        raise shared._Unanswered(token, result)

    async with machine(store, "m0") as database:
        monkeypatch.setattr(SharedDatabase, "_commit", cut)
        task = await Board(database, IDS).add("once", OPERATOR)
        assert [one.id for one in await Board(database, IDS).list()] == [task.id]
        assert len(lost) == 1


async def test_a_commit_that_was_not_made_is_made_again(
    store: StoreAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection dies before the commit arrives: the store says aborted, and the work is done again, once."""
    committing, lost = SharedDatabase._commit, list[UUID]()

    def cut(
        self: SharedDatabase, connection: Connection, engine: SharedEngine, token: UUID, result: object
    ) -> None:
        if lost:
            committing(self, connection, engine, token, result)
            return
        lost.append(token)
        connection.execute("ROLLBACK")
        raise shared._Unanswered(token, result)

    async with machine(store, "m0") as database:
        monkeypatch.setattr(SharedDatabase, "_commit", cut)
        task = await Board(database, IDS).add("once", OPERATOR)
        assert [one.id for one in await Board(database, IDS).list()] == [task.id]


async def test_a_write_that_a_crash_took_is_made_again_though_its_number_was_given_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing of a transaction reached the disk, and others committed under its number then: not lost."""
    server = Server.start(fsync="on", synchronous_commit="on", wal_writer_delay="10s")
    committing, numbers = SharedDatabase._commit, list[int]()
    number = "SELECT pg_current_xact_id()::text::bigint AS number"

    def crash(self: SharedDatabase, connection: Connection, engine: SharedEngine, token: UUID, result: Any) -> None:
        if not numbers:
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
        committing(self, connection, engine, token, result)

    try:
        async with machine(server.new_database(), "m0") as database:
            monkeypatch.setattr(SharedDatabase, "_commit", crash)
            task = await Board(database, IDS).add("once", OPERATOR)
            assert [one.id for one in await Board(database, IDS).list()] == [task.id]
            assert numbers[0] in numbers[1:]  # else this has shown nothing
    finally:
        server.stop()


async def test_a_write_that_was_given_up_comes_too_late(store: StoreAddress) -> None:
    """Once its writer was told that it was not committed, it cannot be: the server refuses its receipt."""
    token = uuid4()
    async with machine(store, "m0") as database:
        with connect(store) as late, connect(store) as asking:
            late.execute("BEGIN; UPDATE agents SET paused = TRUE")
            assert settle(asking, token) is False
            assert settle(asking, token) is False
            with pytest.raises(psycopg.errors.UniqueViolation):
                late.execute(LEAVE, ([], token))
        assert not (await Registry(database).get("ada")).paused


async def test_a_write_that_is_still_being_committed_is_waited_for(store: StoreAddress) -> None:
    """Who asks meanwhile hears nothing yet; who waits hears that it was done."""
    token = uuid4()
    waits = "SELECT FROM pg_locks WHERE NOT granted"
    async with machine(store, "m0"):
        with connect(store) as slow, connect(store) as asking, connect(store) as looking:
            slow.execute("BEGIN; UPDATE agents SET paused = TRUE")
            slow.execute(LEAVE, ([], token))
            asking.execute("SET lock_timeout = '50ms'")
            assert settle(asking, token) is None
            asking.execute("SET lock_timeout = 0")
            answer = asyncio.create_task(asyncio.to_thread(settle, asking, token))
            while looking.execute(waits).fetchone() is None:  # noqa: ASYNC110 (the server's state)
                await asyncio.sleep(0.01)
            slow.execute("COMMIT")
            assert await answer is True


@pytest.mark.parametrize("moment", ["commit", "notify"])
async def test_a_server_that_ends_at_the_end_of_a_write_does_not_have_it_twice(
    store: StoreAddress, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """It says that it ends where the commit's answer was due, or is gone at the wake-up after it: done once."""
    original: Callable[..., str | None] = getattr(SharedEngine, moment)
    ended = list[str]()

    def ending(self: SharedEngine, *given: object) -> str | None:
        result = original(self, *given)
        if not ended:
            ended.append(moment)
            raise psycopg.errors.AdminShutdown("terminating connection due to administrator command")
        return result

    async with machine(store, "m0") as database:
        monkeypatch.setattr(SharedEngine, moment, ending)
        task = await Board(database, IDS).add("once", OPERATOR)
        assert [one.id for one in await Board(database, IDS).list()] == [task.id]
        assert ended == [moment]


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
        await SharedDatabase.open(store, holder="a/1/2/3/4", clock=clock) as one,
        await SharedDatabase.open(store, holder="b/1/2/3/4", clock=clock) as other,
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
        async with machine(address, "m0", patience=math.inf) as database, asyncio.timeout(120):
            database.on_away(told.append)
            database.on_away(lambda _: away.set())
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
    assert "is back" in told[1]


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
