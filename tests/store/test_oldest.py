"""The oldest PostgreSQL that is supported: the schema with every step and right, and what the books do most."""

from __future__ import annotations

from artoo.agents.board.board import Board
from artoo.agents.board.next_task import Allocation
from artoo.agents.board.rows import TaskClaim
from artoo.agents.identity.registry import Registry
from artoo.agents.mail.mailbox import Mailbox
from artoo.cluster.cluster import open_store
from artoo.contracts.agents import OPERATOR, BoardState, TrustLevel
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.store.connecting import connect
from board_work import hand_in
from postgres_server import Server


async def test_a_task_and_a_letter_go_their_way_on_version_14(oldest_postgres: Server) -> None:
    """Made by all migrations, claimed by one statement, handed in, answered. `ARTOO_POSTGRES` runs more there."""
    address, ids = oldest_postgres.new_database(), UuidIds()
    with connect(address) as connection:
        assert connection.info.server_version // 10_000 == 14
    async with await open_store(address, holder="m0/1/2/3/4") as database:
        await Registry(database).register("ada", OPERATOR, sha256="0" * 64, trust=TrustLevel.SENIOR)
        board, mailbox = Board(database, ids), Mailbox(database, SystemClock(), ids)
        task = await board.add("a task", OPERATOR)
        claim = await Allocation(database, ids).next("ada")
        assert isinstance(claim, TaskClaim)
        await hand_in(database, claim, "done")
        assert (await board.get(task.id)).state is BoardState.COMPLETED
        letter = await mailbox.send(OPERATOR, "ada", "a question")
        read = await mailbox.take("ada")
        assert read is not None
        answer = await mailbox.answer(read, "an answer")
        assert answer.in_reply_to == letter.id
