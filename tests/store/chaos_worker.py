"""A process of a machine that claims tasks and letters from a store until it is told to stop.

    chaos_worker.py URL MACHINE HISTORY HOURS

What it did is appended to HISTORY, one JSON line each, after the store has answered. HOURS is by how much this
machine's clock is wrong.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

from artoo.agents.allocation import Allocation
from artoo.agents.board import Board
from artoo.agents.board_rows import TaskClaim
from artoo.agents.holders import this_process
from artoo.agents.mail_rows import MailClaim
from artoo.agents.mailbox import Mailbox
from artoo.agents.shared import SharedDatabase
from artoo.contracts.errors import ClaimLost, GovernanceRefused
from artoo.runtime.system import SystemClock, UuidIds
from artoo.store.address import parse

AGENT = "ada"
LEASE_SECONDS = 2.0
IDLE_SECONDS = 0.1


class WrongClock(SystemClock):
    """A clock that somebody has set wrongly."""

    def __init__(self, hours: float) -> None:
        super().__init__()
        self._off = timedelta(hours=hours)

    def now(self) -> datetime:
        """The time, wrong."""
        return super().now() + self._off


class Worker:
    """One process. Every method notes what came of it."""

    def __init__(self, database: SharedDatabase, clock: WrongClock, history: Path) -> None:
        ids = UuidIds()
        self._board = Board(database, ids)
        self._mailbox = Mailbox(database, clock, ids)
        self._allocation = Allocation(database, ids)
        self._history = os.open(history, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def work(self) -> None:
        """For ever."""
        while True:
            await self._board.work.recover()
            await self._mailbox.recover()
            claim = await self._allocation.next(AGENT, lease_seconds=LEASE_SECONDS)
            if claim is None:
                await asyncio.sleep(IDLE_SECONDS)
            elif isinstance(claim, TaskClaim):
                await self._do(claim)
            else:
                await self._answer(claim)

    async def _do(self, claim: TaskClaim) -> None:
        self._note("claimed", claim.task.id, claim.epoch)
        await asyncio.sleep(random.uniform(0.0, 0.02))
        try:
            await self._board.work.submit(claim, f"epoch {claim.epoch}")
        except (ClaimLost, GovernanceRefused):
            self._note("refused", claim.task.id, claim.epoch)
        else:
            self._note("submitted", claim.task.id, claim.epoch)

    async def _answer(self, claim: MailClaim) -> None:
        try:
            await self._mailbox.answer(claim, f"epoch {claim.epoch}")
        except ClaimLost:
            self._note("refused", claim.mail.id, claim.epoch)
        else:
            self._note("answered", claim.mail.id, claim.epoch)

    def _note(self, what: str, about: str, epoch: int) -> None:
        os.write(self._history, (json.dumps({"what": what, "about": about, "epoch": epoch}) + "\n").encode())


async def main(url: str, machine: str, history: str, hours: str) -> None:
    """Opens the books and works."""
    async with await SharedDatabase.open(
        parse(url), holder=this_process(machine), patience=math.inf, most=2
    ) as database:
        await Worker(database, WrongClock(float(hours)), Path(history)).work()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
