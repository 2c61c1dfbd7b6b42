"""The activity database: durable, shared, and clear when it cannot be used."""

from __future__ import annotations

import asyncio
import logging
import resource
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from core_doubles import Stream, office

from artoo.agents.board.claim_holders import is_dead, this_process
from artoo.agents.mail.outbox import OTHERS_SECONDS, Outbox
from artoo.agents.storage import database as embedded
from artoo.agents.storage.database import APPLICATION_ID, database_path, open_file, schema
from artoo.agents.storage.transaction import Writing, marked
from artoo.contracts.agents import OPERATOR, TaskMoved
from artoo.contracts.base import Contract
from artoo.contracts.errors import ActivityStoreError, ConfigurationError
from artoo.contracts.roles import Role
from artoo.testing import FakeClock
from board_work import hand_in, take


class SetClock(FakeClock):
    """A wall clock that somebody may set."""

    def __init__(self) -> None:
        super().__init__()
        self.set_by = timedelta()

    def now(self) -> datetime:
        return super().now() + self.set_by


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite://./data/agent_activities.db", "/home/x/data/agent_activities.db"),
        ("sqlite:///var/a.db", "/var/a.db"),
    ],
)
def test_the_seeds_path_is_relative_to_the_home(url: str, path: str) -> None:
    """`sqlite://./data/…` starts at the home; an absolute path stands for itself."""
    assert database_path(url, Path("/home/x")) == Path(path)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite://:memory:", "postgres://x/y"])
def test_a_url_that_names_no_file_is_refused(url: str) -> None:
    """The error shows the form that works."""
    with pytest.raises(ConfigurationError, match="must name a file"):
        database_path(url, Path("/home/x"))


async def test_opening_makes_a_private_file_in_wal_mode(tmp_path: Path) -> None:
    """The file is its owner's alone, journalled ahead, of this version, and sound."""
    path = tmp_path / "data" / "a.db"
    for _ in range(2):
        async with await open_file(path, FakeClock()) as database:
            assert await database.check() == ()
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("PRAGMA user_version").fetchone() == (len(schema().steps),)
            connection.execute("PRAGMA journal_mode = DELETE")  # as a copy may be that is put back
    assert path.stat().st_mode & 0o077 == 0


async def test_many_open_at_once(tmp_path: Path) -> None:
    """Sixteen connections that all find no file agree on one schema."""
    opened = await asyncio.gather(*(open_file(tmp_path / "a.db", FakeClock()) for _ in range(16)))
    numbers = await asyncio.gather(*(database.write(Writing.next_number) for database in opened))
    for database in opened:
        await database.close()
    assert sorted(numbers) == list(range(1, 17))


async def test_a_newer_schema_is_left_alone(tmp_path: Path) -> None:
    """The error says which version it is and what to do; the file keeps it."""
    async with await open_file(tmp_path / "a.db", FakeClock()):
        pass
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute(f"PRAGMA user_version = {len(schema().steps) + 1}")
    told = rf"newer artoo .schema {len(schema().steps) + 1}.*Update artoo.*another file in \S*\.activity_db"
    with pytest.raises(ActivityStoreError, match=told):
        await open_file(tmp_path / "a.db", FakeClock())


async def test_a_file_of_the_first_schema_is_upgraded(tmp_path: Path) -> None:
    """What stood in it is there, with claims counted from nought, and can be worked on."""
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.executescript(schema().steps[0])
        connection.execute(
            "INSERT INTO tasks (id, state, priority, creator, open_to_all, project, queue, queued_us,"
            " created_at_us, updated_at_us, text)"
            " VALUES ('old', 'pending', 'standard', 'operator', 1, '', 1, 0, 0, 0, 'x')"
        )
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    async with office(tmp_path) as opened:
        claim = await take(opened.database, "old", "dot")
        assert (claim.epoch, claim.task.made_on) == (1, "")
        assert (await hand_in(opened.database, claim, "done")).submission == 1


async def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    """A file with tables that are not ours is refused and keeps them only."""
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("CREATE TABLE songs (name)")
    with pytest.raises(ActivityStoreError, match=r"some other program.*another file in \S*\.activity_db"):
        await open_file(tmp_path / "a.db", FakeClock())
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("songs",)]


async def test_damage_is_named(tmp_path: Path) -> None:
    """A file of something else, and one with a torn page, say that they are damaged and what to do."""
    (tmp_path / "a.db").write_bytes(b"not a database at all, but long enough to have a header" * 100)
    with pytest.raises(ActivityStoreError, match=r"damaged. Restore a copy.*with what is newer than the copy lost"):
        await open_file(tmp_path / "a.db", FakeClock())
    async with office(tmp_path / "b") as opened:
        await opened.board.add("x", OPERATOR)
    path = tmp_path / "b" / "a.db"
    path.write_bytes(path.read_bytes()[:4_096] + b"\xff" * 40_960)
    with pytest.raises(ActivityStoreError, match=r"damaged. Restore a copy.*begin anew"):
        async with office(tmp_path / "b") as opened:
            await opened.board.list()


async def test_a_full_disk_loses_nothing_that_was_accepted(tmp_path: Path) -> None:
    """A write that does not fit is refused whole, with advice; what was there stays, and work goes on with room."""
    async with office(tmp_path) as opened:
        kept = await opened.board.add("kept", OPERATOR)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        wal = tmp_path / "a.db-wal"
        resource.setrlimit(resource.RLIMIT_FSIZE, (wal.stat().st_size + 4_096, before[1]))
        try:
            with pytest.raises(ActivityStoreError, match="free some room"):
                await opened.board.add("x" * 20_000, OPERATOR)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert await opened.board.list() == (kept,)
        await opened.board.add("more", OPERATOR)
        assert await opened.database.check() == ()


async def test_who_stays_waits_for_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large write waits, once; readers and small ones go on. It is told once that there is no room, and once that
    there is: when the last one that waited is written, or somebody writes after those gave up."""
    monkeypatch.setattr(embedded, "PAUSES", (0.01,))
    told, full = list[str](), asyncio.Event()

    def tell(sentence: str) -> None:
        told.append(sentence)
        full.set()

    async with await open_file(tmp_path / "a.db", FakeClock(), lasting=tell) as database:
        await database.write(lambda writing: writing.mark("x", "1"))
        for given_up in (True, False):
            told.clear()
            full.clear()
            await database.read(lambda reading: reading.one("PRAGMA max_page_count = 1"))  # as many as there are
            waiting = asyncio.create_task(database.write(lambda writing: writing.mark("large", "y" * 200_000)))
            await asyncio.wait_for(full.wait(), 10)
            for _ in range(5):
                await database.write(lambda writing: writing.change("marks", "x", key="name", value="2"))
                await asyncio.sleep(0.02)
            assert await database.read(lambda reading: marked(reading, "large")) == "" and not waiting.done()
            (no_room,) = told
            assert "free some room" in no_room and "Nothing new is begun" in no_room
            if given_up:
                waiting.cancel()
                await asyncio.wait({waiting})
                assert len(told) == 1
                await database.write(lambda writing: writing.change("marks", "x", key="name", value="2"))
            else:
                await database.read(lambda reading: reading.one("PRAGMA max_page_count = 1000000"))
                await asyncio.wait_for(waiting, 10)
                assert len(await database.read(lambda reading: marked(reading, "large"))) == 200_000
            assert len(told) == 2 and "can be used again" in told[1]


async def test_who_holds_the_file_too_long_is_waited_for_and_then_named(tmp_path: Path) -> None:
    """A transaction of another process that does not end gives an error after the busy timeout, not a hang."""
    async with await open_file(tmp_path / "a.db", FakeClock(), busy_seconds=0.05) as database:
        with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(ActivityStoreError, match="Another process"):
                await database.write(Writing.next_number)
            other.execute("ROLLBACK")
        assert await database.write(Writing.next_number) == 1


@pytest.mark.usefixtures("engine")
async def test_a_failing_change_changes_nothing(tmp_path: Path) -> None:
    """An exception in the middle of a transaction undoes it."""

    def halfway(writing: Writing) -> None:
        writing.run("DELETE FROM agents")
        raise KeyError("stop")

    async with office(tmp_path) as opened:
        with pytest.raises(KeyError):
            await opened.database.write(halfway)
        assert len(await opened.registry.list()) == 5


@pytest.mark.parametrize("table", ["transitions", "task_changes"])
@pytest.mark.parametrize("verb", ["UPDATE {} SET actor = 'nobody'", "DELETE FROM {}"])
async def test_the_audit_trail_is_append_only(tmp_path: Path, table: str, verb: str) -> None:
    """The database itself refuses to change or drop what happened."""
    async with office(tmp_path) as opened:
        task = await opened.board.add("x", OPERATOR)
        await opened.board.set_complexity(task.id, None, OPERATOR)
    with (
        closing(sqlite3.connect(tmp_path / "a.db")) as connection,
        pytest.raises(sqlite3.IntegrityError, match="kept as they were written"),
    ):
        connection.execute(verb.format(table))


async def test_time_never_goes_back_for_what_waits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The clock is set back by an hour: waiting times go on from where they were, and the jump is recorded."""
    clock = SetClock()

    async with await open_file(tmp_path / "a.db", clock) as database:
        first = await database.write(lambda writing: writing.steady_us)
        clock.set_by = timedelta(hours=-1)
        with caplog.at_level(logging.WARNING):
            second = await database.write(lambda writing: writing.steady_us)
        clock.advance(10)
        third = await database.write(lambda writing: writing.steady_us)
        jumps = await database.read(
            lambda reading: [row["back_us"] for row in reading.all("SELECT * FROM clock_jumps")]
        )
    assert second == first
    assert third == first + 10_000_000
    assert jumps == [3_600_000_000]
    assert "went back by 3600.0 s" in caplog.text


async def test_a_clock_set_back_ends_no_claim_and_keeps_the_chain(tmp_path: Path) -> None:
    """A lease lasts as long as it should, and the log stays in order although its times go back."""
    clock = SetClock()
    async with office(tmp_path, clock) as opened:
        task = await opened.board.add("x", OPERATOR)
        claim = await take(opened.database, task.id, "dot")
        clock.set_by = timedelta(days=-1)
        await opened.board.work.recover(lambda _: False)
        await opened.board.work.renew(claim)
        clock.advance(61)
        assert (await opened.board.work.recover(lambda _: False)).work == (task.id,)
        log = [record for record in await opened.board.log(task.id) if isinstance(record, TaskMoved)]
    assert [record.after.value for record in log] == ["pending", "in_progress", "blocked"]
    assert log[0].at > log[2].at == datetime(2025, 12, 31, 0, 1, 1, tzinfo=UTC)


@pytest.mark.usefixtures("engine")
async def test_records_are_published_once_in_order_and_again_only_after_a_crash(tmp_path: Path) -> None:
    """What was not published when the process died comes first at the next start, under the same name."""
    stream = Stream()
    async with office(tmp_path, holder="one/1/1/1/1") as opened:
        await opened.board.add("a", OPERATOR)
        outbox = Outbox(opened.database, stream, is_dead=lambda _: False)
        published = await outbox.drain()
        assert published == len(stream.records) > 0
        assert await outbox.drain() == 0
        await opened.board.add("b", OPERATOR)
    later = Stream()
    async with office(tmp_path, holder="two/1/1/1/1", team=False) as opened:
        living = Outbox(opened.database, later, is_dead=lambda _: False)
        assert await living.drain() == 0, "its home lives and publishes it itself"
        assert await Outbox(opened.database, later, is_dead=lambda _: True).drain() == 1
    moved = [record for record in (*stream.records, *later.records) if isinstance(record, TaskMoved)]
    assert [record.before for record in moved] == [None, None]
    assert len({record.event for record in moved}) == 2


@pytest.mark.usefixtures("engine")
async def test_what_a_command_did_comes_before_what_followed(tmp_path: Path) -> None:
    """A task that is taken at once: first it was added, though the command that added it has not ended."""
    stream = Stream()
    async with (
        office(tmp_path, holder="command", team=False) as command,
        office(tmp_path, holder="serving") as serving,
    ):
        task = await command.board.add("a", OPERATOR)
        await take(serving.database, task.id, "bob")
        await Outbox(serving.database, stream, is_dead=lambda _: False).drain()
    moved = [record.after.value for record in stream.records if isinstance(record, TaskMoved)]
    assert moved == ["pending", "in_progress"]


@pytest.mark.usefixtures("engine")
async def test_what_other_processes_left_is_published_without_a_write_of_ones_own(tmp_path: Path) -> None:
    """A command that ends after this process last looked is told of soon, although nothing here was written."""
    stream, gone, clock = Stream(), list[str](), FakeClock()
    async with (
        office(tmp_path, holder="command", team=False) as command,
        office(tmp_path, holder="serving", team=False) as serving,
        asyncio.timeout(20),
    ):
        outbox = Outbox(serving.database, stream, is_dead=gone.__contains__)
        publishing = asyncio.create_task(outbox.run(clock))
        await clock.wait_for_sleepers(1)
        task = await command.board.add("a", OPERATOR)
        gone.append("command")
        while not stream.records:
            await clock.wait_for_sleepers(1)
            clock.advance(OTHERS_SECONDS)
        publishing.cancel()
    assert [record.board_task for record in stream.records if isinstance(record, TaskMoved)] == [task.id]


@pytest.mark.usefixtures("engine")
async def test_a_crash_between_publishing_and_taking_out_repeats_the_same_name(tmp_path: Path) -> None:
    """A consumer that counts each event once sees it once."""
    stream = Stream()
    async with office(tmp_path) as opened:
        await opened.board.add("a", OPERATOR)

        class Died(Exception):
            pass

        def dies(sender: Role, subject: str, payload: Contract) -> None:
            stream(sender, subject, payload)
            raise Died

        with pytest.raises(Died):
            await Outbox(opened.database, dies).drain()
        await Outbox(opened.database, stream).drain()
    assert stream.records[0] == stream.records[1]


def test_a_process_is_known_to_be_dead_only_when_it_is() -> None:
    """This one lives; a number that was given to another, or to none, is dead; what cannot be told is not."""
    pid, started, namespace, boot = this_process().split("/")
    assert not is_dead(this_process())
    assert is_dead(f"{pid}/{int(started) - 1}/{namespace}/{boot}")
    assert is_dead(f"4194303/1/{namespace}/{boot}")
    assert is_dead(f"{pid}/{started}/{namespace}/another-boot")
    assert not is_dead(f"{pid}/{started}/pid:[1]/{boot}")
    assert not is_dead("somebody")
