"""A process of a team: sends letters, works on what the board and the mailbox give it, publishes what it did.

Arguments: directory, its name, letters to send, the first one's number. It prints each letter's number once the
letter was accepted, and writes what it publishes to a file of its own, a record a line, each in one write.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from artoo.agents.board.board import Board
from artoo.agents.board.claim_holders import this_process
from artoo.agents.board.next_task import Allocation
from artoo.agents.board.reviews import Reviews
from artoo.agents.board.rows import TaskClaim
from artoo.agents.board.rules import SEED_POLICIES
from artoo.agents.mail.mailbox import Mailbox
from artoo.agents.mail.outbox import Outbox
from artoo.agents.storage.database import Database, open_file
from artoo.cluster.cluster import open_store
from artoo.contracts.agents import OPERATOR, BoardState, Complexity
from artoo.contracts.base import Contract
from artoo.contracts.roles import Role
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.store.address import parse
from board_work import pass_what_waits

AGENT = "bob"
UNFINISHED = (BoardState.PENDING, BoardState.IN_PROGRESS, BoardState.BLOCKED, BoardState.REVIEW)


async def _books(directory: Path, clock: SystemClock) -> Database:
    """Those in the directory, or in the store that the environment names."""
    url = os.environ.get("ARTOO_STORE")
    if url is None:
        return await open_file(directory / "a.db", clock)
    return await open_store(parse(url), holder=this_process("machine"))


async def work(directory: Path, name: str, numbers: Iterator[int]) -> None:
    """Until its letters are sent and nothing is left to do."""
    clock, ids = SystemClock(), UuidIds()
    stream = os.open(directory / f"{name}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def publish(sender: Role, subject: str, payload: Contract) -> None:
        os.write(stream, f"{payload.kind()} {payload.model_dump_json()}\n".encode())

    async with await _books(directory, clock) as database:
        board, mailbox = Board(database, ids), Mailbox(database, clock, ids)
        outbox, allocation = Outbox(database, publish), Allocation(database, ids)
        merges = Reviews(database, UuidIds(), SEED_POLICIES)
        await outbox.drain()
        busy = True
        while busy:
            number = next(numbers, None)
            if number is not None:
                if number % 3 == 0:
                    await board.add(f"{name}-{number}", OPERATOR, complexity=Complexity.SIMPLE)
                await mailbox.send(OPERATOR, AGENT, "a letter", mail_id=f"{name}-{number}")
                print(number, flush=True)
            await pass_what_waits(database)
            await board.work.recover()
            await mailbox.recover()
            claim = await allocation.next(AGENT)
            if isinstance(claim, TaskClaim):
                await merges.submit(claim, "done")
            elif claim is not None:
                await mailbox.answer(claim, f"to {claim.mail.id}")
            await outbox.drain()
            left = claim is not None or await mailbox.unread(AGENT) or await board.list(UNFINISHED)
            busy = number is not None or bool(left)


if __name__ == "__main__":
    first = int(sys.argv[4])
    asyncio.run(work(Path(sys.argv[1]), sys.argv[2], iter(range(first, first + int(sys.argv[3])))))
