"""A process of a machine that claims tasks and letters from a store until it is killed.

    chaos_worker.py URL PLACE NUMBER AGENT HOURS

PLACE/home is the machine's home, with its audit; what this process did is appended to PLACE/NUMBER.jsonl, one JSON
line each, after the store has answered. HOURS is by how much the machine's clock is wrong; SIGUSR1 makes it jump.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

from artoo import Artoo, Config
from artoo.agents.board.board import Board
from artoo.agents.board.next_task import Allocation
from artoo.agents.board.reviews import Reviews
from artoo.agents.board.rows import TaskClaim
from artoo.agents.board.rules import SEED_POLICIES
from artoo.agents.mail.mailbox import Mailbox
from artoo.agents.mail.outbox import Outbox
from artoo.agents.mail.rows import MailClaim
from artoo.agents.storage.database import Database
from artoo.cluster.machines import Seats
from artoo.contracts.agents import BoardState
from artoo.contracts.base import Contract
from artoo.contracts.errors import ClaimLost, GovernanceRefused
from artoo.contracts.roles import Role
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.team.office import open_books
from artoo.testing import ScriptedModel
from board_work import pass_what_waits

LEASE_SECONDS = 2.0
IDLE_SECONDS = 0.1
RECOVER_SECONDS = 0.5


class WrongClock(SystemClock):
    """A clock that somebody has set wrongly, and sets again."""

    def __init__(self, hours: float) -> None:
        super().__init__()
        self._off = timedelta(hours=hours)

    def now(self) -> datetime:
        """The time, wrong."""
        return super().now() + self._off

    def jump(self) -> None:
        """What was early is late, what was right is an hour early."""
        self._off = -self._off or timedelta(hours=1)


class Worker:
    """One process. Every method notes what came of it."""

    def __init__(self, database: Database, clock: WrongClock, history: Path, agent: str) -> None:
        ids = UuidIds()
        self._agent = agent
        self._database = database
        self._merges = Reviews(database, UuidIds(), SEED_POLICIES)
        self._board = Board(database, ids)
        self._mailbox = Mailbox(database, clock, ids)
        self._allocation = Allocation(database, ids)
        self._history = os.open(history, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def work(self) -> None:
        """For ever."""
        looked = -RECOVER_SECONDS
        while True:
            if time.monotonic() - looked > RECOVER_SECONDS:
                await pass_what_waits(self._database)
                await self._board.work.recover()
                await self._mailbox.recover()
                looked = time.monotonic()
            claim = await self._allocation.next(self._agent, lease_seconds=LEASE_SECONDS)
            if claim is None:
                await asyncio.sleep(IDLE_SECONDS)
            elif isinstance(claim, TaskClaim):
                await self._do(claim)
            else:
                await self._answer(claim)

    async def _do(self, claim: TaskClaim) -> None:
        if claim.task.state is BoardState.REVIEW:
            return  # of a process that was killed; the upkeep passes it
        self._note("claimed", claim.task.id, claim.epoch)
        await asyncio.sleep(random.uniform(0.0, 0.02))
        try:
            await self._merges.submit(claim, f"epoch {claim.epoch}")
        except (ClaimLost, GovernanceRefused):
            self._note("refused", claim.task.id, claim.epoch)
        else:
            self._note("done", claim.task.id, claim.epoch)
            await pass_what_waits(self._database)

    async def _answer(self, claim: MailClaim) -> None:
        self._note("claimed", claim.mail.id, claim.epoch)
        await asyncio.sleep(random.uniform(0.0, 0.005))
        try:
            await self._mailbox.answer(claim, f"epoch {claim.epoch}")
        except ClaimLost:
            self._note("refused", claim.mail.id, claim.epoch)
        else:
            self._note("done", claim.mail.id, claim.epoch)

    def _note(self, what: str, about: str, epoch: int) -> None:
        line = json.dumps({"what": what, "about": about, "epoch": epoch, "process": os.getpid()})
        os.write(self._history, (line + "\n").encode())


async def main(url: str, place: Path, number: str, agent: str, hours: str) -> None:
    """Opens the books and works; what it writes goes over a stream that is audited."""
    clock = WrongClock(float(hours))
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, clock.jump)
    config = Config(store=url, workspace=place / "workspace").at_home(place / "home")
    with ScriptedModel({}) as model:
        async with (
            await open_books(config, clock, lasting=_say) as database,
            Artoo(config, environ={}, model=model, clock=clock) as artoo,
        ):

            def publish(sender: Role, subject: str, payload: Contract) -> None:
                artoo.bus.port(sender, "").publish(payload)
                artoo.bus.close_task("")  # it speaks, and hears nothing

            async with asyncio.TaskGroup() as group:
                await Seats(database).take(agent)  # False: the machine's other worker has it; the role is the same
                group.create_task(Outbox(database, publish).run(clock))
                group.create_task(Worker(database, clock, place / f"{number}.jsonl", agent).work())


def _say(said: str) -> None:
    print(said, file=sys.stderr, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]))
