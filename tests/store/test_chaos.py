"""Killed and frozen workers, a killed server, cut wires, wrong clocks: nothing lost, doubled, or done too late."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from chaos_field import AGENTS, BLOWS, CUTS, MACHINES, Field
from chaos_field import field as open_field
from chaos_history import history, noted
from chaos_network import Network, NoNamespaces

from artoo.agents.board.board import Board
from artoo.agents.identity.registry import Registry
from artoo.agents.mail.mailbox import Mailbox
from artoo.agents.mail.outbox import Outbox
from artoo.agents.storage.database import Database
from artoo.auditor.layout import audit_directory
from artoo.auditor.verify import Verification, verify
from artoo.cluster.cluster import open_store
from artoo.contracts.agents import OPERATOR, Complexity, TrustLevel
from artoo.contracts.base import Contract
from artoo.contracts.roles import Role
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.runtime.cluster.remote_logs import verify_shared
from artoo.runtime.cluster.upload_logs import Sharing
from artoo.store.address import StoreAddress
from artoo.tasklog.layout import tasks_directory

END_SECONDS = 1_800.0
SENDERS = tuple(f"sender{number}" for number in range(5))
AT_ONCE = 4
SENDINGS = 6
RUNS = int(os.environ.get("ARTOO_CHAOS_RUNS", "200"))
WHOLE_EVERY = int(os.environ.get("ARTOO_CHAOS_WHOLE_EVERY", "10"))
LEFT = """
SELECT (SELECT count(*) FROM tasks WHERE state <> 'completed')
    + (SELECT count(*) FROM mails WHERE in_reply_to IS NULL AND partition <> 'archive')
    + (SELECT count(*) FROM events)
"""


@dataclass(slots=True)
class Work:
    """What the operator and five more ask for, while all that happens; with the ids of what was accepted."""

    database: Database
    tasks: list[str] = field(default_factory=list[str])
    letters: list[str] = field(default_factory=list[str])

    async def given(self, tasks: int, letters: int) -> None:
        """Puts it all on the board and into the mail."""
        registry = Registry(self.database)
        for name in (*AGENTS, *SENDERS):
            await registry.register(name, OPERATOR, sha256="0" * 64, trust=TrustLevel.SENIOR)
        async with asyncio.TaskGroup() as group:
            for part in range(AT_ONCE):
                group.create_task(self._tasks(len(range(part, tasks, AT_ONCE))))
                group.create_task(self._letters(range(part, letters, AT_ONCE)))

    async def _tasks(self, count: int) -> None:
        board = Board(self.database, UuidIds())
        for _ in range(count):
            self.tasks.append((await board.add("work", OPERATOR, complexity=Complexity.SIMPLE)).id)

    async def _letters(self, numbers: Sequence[int]) -> None:
        mailbox = Mailbox(self.database, SystemClock(), UuidIds())
        for number in numbers:
            to = AGENTS[number % len(AGENTS)]
            self.letters.append((await mailbox.send(SENDERS[number % len(SENDERS)], to, "a question")).id)


async def chaos(
    place: Path, *, tasks: int, letters: int, blows: Sequence[str], seed: int, network: Network | None, pause: float
) -> None:
    """Runs it all, waits until everything is done, and looks at what happened."""
    async with open_field(place, 6, network, seed) as around:
        opening = open_store(around.address, holder="office/1/2/3/4", patience=END_SECONDS)
        async with await opening as database, asyncio.timeout(END_SECONDS):
            work = Work(database)
            async with asyncio.TaskGroup() as group:
                group.create_task(work.given(tasks, letters))
                group.create_task(around.suffer(blows, pause))
            await all_done(around, database)
            around.stop()
            happened = await history(database, noted(place), work.tasks, work.letters)
            happened.keep(place / "history.json")
            assert happened.problems() == []
            assert len(happened.tasks) == tasks and len(happened.letters) == letters
            proofs = [await proof(around.place(machine) / "home", around.address) for machine in range(MACHINES)]
        for found in proofs:
            assert [f"{one.file.name}: {one.detail}" for one in found.problems] == []
        assert all(any(chain.messages for chain in found.chains) for found in proofs)


async def all_done(around: Field, database: Database) -> None:
    """Returns when no work is left and every record has reached a stream. Raises when a worker gave up."""
    outbox = Outbox(database, _nowhere)
    while await database.read(lambda reading: reading.count(LEFT)):
        assert around.ended() == []
        await asyncio.sleep(0.3)
        await outbox.drain()


def _nowhere(sender: Role, subject: str, payload: Contract) -> None:
    """The stream of the process that hands in."""


async def proof(home: Path, address: StoreAddress) -> Verification:
    """What `artoo audit verify` finds on a machine, once what killed processes had not sent is in the store."""
    found = Verification()
    for _ in range(SENDINGS):
        sharing = Sharing(home, address)
        sharing.start()
        await asyncio.to_thread(sharing.close)  # gives up after some seconds; the next one goes on
        found = await asyncio.to_thread(verify, audit_directory(home), tasks_directory(home))
        await asyncio.to_thread(verify_shared, home, address, found)
        if found.sound:
            break
    return found


@pytest.fixture
def wires() -> Generator[Network]:
    """Three machines and a server with wires between them."""
    try:
        network = Network.made(MACHINES)
    except NoNamespaces as error:
        pytest.skip(str(error))
    with network:
        yield network


@pytest.mark.usefixtures("postgres")  # skipped where there is none
async def test_kills_freezes_and_a_dead_server_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:
    """All clocks are wrong and jump, the server's too; without a network to cut, so anybody can run it."""
    blows = ("kill", "server", "freeze", "clock", "server_clock")
    await chaos(tmp_path, tasks=30, letters=30, blows=blows, seed=1, network=None, pause=0.3)


@pytest.mark.torture
@pytest.mark.usefixtures("postgres")
async def test_cut_wires_lose_nothing_and_do_nothing_twice(tmp_path: Path, wires: Network) -> None:
    """Each way once, with a kill between; what was claimed before a cut is done once, here or elsewhere."""
    blows = ("cut_out", "kill", "cut_in", "cut_both")
    await chaos(tmp_path, tasks=60, letters=60, blows=blows, seed=2, network=wires, pause=1.0)


@pytest.mark.torture
@pytest.mark.usefixtures("postgres")
@pytest.mark.parametrize("seed", range(RUNS))
async def test_chaos(tmp_path: Path, wires: Network, seed: int) -> None:
    """Everything at once in a random order: every tenth run 2,000 tasks and 5,000 letters, the others a tenth."""
    chance, whole = random.Random(seed), seed % WHOLE_EVERY == 0
    blows = chance.choices([*BLOWS, *CUTS], weights=[5, 3, 2, 1, 1, 2, 2, 2], k=30 if whole else 10)
    tasks, letters, pause = (2_000, 5_000, 3.0) if whole else (200, 500, 1.0)
    await chaos(tmp_path, tasks=tasks, letters=letters, blows=blows, seed=seed, network=wires, pause=pause)
