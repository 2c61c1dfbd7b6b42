"""Books that move from a home into a store and back: nothing is lost, and both go on from there."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from artoo.agents.board.board import Board
from artoo.agents.board.next_task import Allocation
from artoo.agents.board.rows import TaskClaim
from artoo.agents.board.rules import SEED_POLICIES
from artoo.agents.cognition.observations import Noted
from artoo.agents.cognition.store import CognitionStore, Session
from artoo.agents.foreign.foreign_tasks import Foreign, ForeignRequest
from artoo.agents.foreign.push_targets import ForeignPost, Target
from artoo.agents.foreign.settings import Peer
from artoo.agents.identity.registry import Registry
from artoo.agents.mail.mailbox import Mailbox
from artoo.agents.mail.request_reply import MailRequests
from artoo.agents.mail.rows import MailClaim
from artoo.agents.mail.wake import Wake
from artoo.agents.patrol.store import ItemState, PatrolStore
from artoo.agents.storage.database import Database, open_file
from artoo.cluster.cluster import open_store
from artoo.cluster.migrate import TEAM, team
from artoo.contracts.agents import OPERATOR, BoardState, Complexity, TrustLevel
from artoo.contracts.errors import ActivityStoreError, ConfigurationError
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.store import pooled
from artoo.store.address import StoreAddress
from artoo.store.connecting import connect
from board_work import hand_in, take

IDS, CLOCK = UuidIds(), SystemClock()


async def fill(database: Database) -> None:
    """Something in every table that moves: tasks in several states, letters, a wait, activity, odd texts."""
    registry, board, mailbox = Registry(database), Board(database, IDS), Mailbox(database, CLOCK, IDS)
    for name in ("ada", "bob"):
        await registry.register(name, OPERATOR, sha256="0" * 64, trust=TrustLevel.SENIOR)
    await registry.pause("bob", OPERATOR)
    done = await board.add("done 完成 \N{SNOWMAN}", OPERATOR, complexity=Complexity.SIMPLE)
    await hand_in(database, await take(database, done.id, "ada"), 'it\'s \\done\\ "so"\n')
    await take(database, (await board.add("under way", OPERATOR)).id, "ada")
    await board.set_complexity((await board.add("waits", OPERATOR)).id, Complexity.COMPLEX, OPERATOR)
    for number in range(30):
        await mailbox.send(OPERATOR, "ada", f"letter {number}")
    await mailbox.answer(await taken(mailbox), "yes")
    await MailRequests(database, mailbox, Wake(database, CLOCK), CLOCK).ask("ada", OPERATOR, "so?", seconds=0.01)
    foreign, post = Foreign(database, IDS, policies=SEED_POLICIES), ForeignPost(database)
    asked, _ = await foreign.accept("carl", ForeignRequest("m1", "", "asked"), Peer(calls=7))
    await foreign.more("carl", asked.task.id, ForeignRequest("m2", "", "and more"), Peer())
    await post.keep(Target(asked.task.id, "target", "{}", 0))
    store = CognitionStore(database, "ada", 90)
    await store.keep(Session("run", "task", "did it"), Noted("saw it", "pattern"))
    await PatrolStore(database, "ada").put("item", ItemState(CLOCK.now(), "seen", "key"))


async def taken(mailbox: Mailbox) -> MailClaim:
    """The next letter."""
    claim = await mailbox.take("ada")
    assert claim is not None
    return claim


async def test_a_home_moves_into_a_store_and_back(store: StoreAddress, tmp_path: Path) -> None:
    """Rows and hashes are the same in the home, in the store, and in a second home; the board goes on in both."""
    async with await open_file(tmp_path / "one.db", CLOCK) as database:
        await fill(database)
    first, second = team(tmp_path / "one.db", "m1"), team(tmp_path / "two.db", "m2")
    before = first.in_home()
    assert first.move_in(store) == before == first.in_store(store) == second.move_out(store)
    empty = {one.table for one in before if not one.rows}
    assert empty <= {"waits", "pulses", "patterns", "dreams", "marks", "foreign_letters"}
    assert [one.table for one in before] == list(TEAM)
    async with await open_store(store, holder="m1/1/2/3/4") as shared:
        await goes_on(shared, "m1")
    async with await open_file(tmp_path / "two.db", CLOCK) as home:
        await goes_on(home, "m1")


async def goes_on(database: Database, machine: str) -> None:
    """The log, the queue and the letters go on in their order; the finished task names who has its files."""
    board, mailbox = Board(database, IDS), Mailbox(database, CLOCK, IDS)
    tasks = {task.text[:4]: task for task in await board.list()}
    assert tasks["done"].made_on in ("", machine)
    later = await board.add("later", OPERATOR)
    claim = await Allocation(database, IDS, mail=False).next("ada")
    assert isinstance(claim, TaskClaim)
    assert claim.task.text == "waits"
    await board.set_reviewer(later.id, OPERATOR, OPERATOR)
    assert [record.__class__.__name__ for record in await board.log(later.id)] == ["TaskMoved", "TaskChanged"]
    letter = await taken(mailbox)
    assert letter.mail.text == "letter 1"
    await mailbox.answer(letter, "yes")
    assert (await board.get(tasks["unde"].id)).state is BoardState.IN_PROGRESS
    seen = await Foreign(database, IDS, policies=SEED_POLICIES).get("carl", "", tasks["aske"].id)
    assert seen is not None and [said.text for said in seen.messages] == ["asked", "and more"]


async def test_books_move_only_to_where_none_are(store: StoreAddress, tmp_path: Path) -> None:
    """A store and a home that have something already are left alone."""
    for name in ("one", "two"):
        async with await open_file(tmp_path / f"{name}.db", CLOCK) as database:
            await Registry(database).register("ada", OPERATOR, sha256="0" * 64)
    team(tmp_path / "one.db", "m1").move_in(store)
    with pytest.raises(ConfigurationError, match="has books already"):
        team(tmp_path / "two.db", "m2").move_in(store)
    with pytest.raises(ConfigurationError, match="has books already"):
        team(tmp_path / "two.db", "m2").move_out(store)


async def test_a_move_that_fails_leaves_nothing(store: StoreAddress, tmp_path: Path) -> None:
    """A row that the store refuses takes all others back."""
    async with await open_file(tmp_path / "one.db", CLOCK) as database:
        await fill(database)
    with closing(sqlite3.connect(tmp_path / "one.db")) as file:
        file.execute("INSERT INTO marks VALUES ('odd', 'a' || char(0))")
        file.commit()
    with pytest.raises(ActivityStoreError, match="NUL"):
        team(tmp_path / "one.db", "m1").move_in(store)
    with connect(store) as connection:
        assert connection.execute("SELECT count(*) AS n FROM mails").fetchone() == {"n": 0}


async def test_who_only_reads_leaves_a_server_that_says_nothing(
    store: StoreAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a move into the store takes as long as it takes: `store check` ends with an error."""
    monkeypatch.setattr(pooled.Connection, "silence_seconds", 1.0)
    with connect(store) as connection, connection.transaction():
        connection.execute("LOCK TABLE agents")
        with pytest.raises(ActivityStoreError, match="nothing for 1 s"):
            await asyncio.wait_for(asyncio.to_thread(team(tmp_path / "a.db", "m1").in_store, store), 20)
