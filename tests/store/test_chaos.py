"""Workers that are killed and frozen, and a server that is killed: nothing is lost, nothing is done twice."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from chaos_worker import AGENT, LEASE_SECONDS

from artoo.agents.board import Board
from artoo.agents.database import Database
from artoo.agents.mailbox import Mailbox
from artoo.agents.registry import Registry
from artoo.agents.shared import SharedDatabase
from artoo.agents.transaction import Reading
from artoo.contracts.agents import OPERATOR, BoardState, Complexity, TrustLevel
from artoo.runtime.system import SystemClock, UuidIds
from artoo.store.address import StoreAddress
from postgres_server import Server

WORKER = Path(__file__).with_name("chaos_worker.py")
MACHINES = 3
END_SECONDS = 300.0


class Field:
    """The workers, by number; those of one machine share its name and its wrong clock."""

    def __init__(self, address: StoreAddress, place: Path, workers: int) -> None:
        self._address = address
        self._place = place
        self.running = [self._start(number) for number in range(workers)]

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        machine = number % MACHINES
        arguments = [self._address.url, f"m{machine}", str(self._place / f"{number}.jsonl"), str(machine - 1)]
        return subprocess.Popen([sys.executable, str(WORKER), *arguments])

    async def kill(self, number: int) -> None:
        """Ends a worker without a word, and starts it again."""
        self.running[number].kill()
        await asyncio.to_thread(self.running[number].wait)
        self.running[number] = self._start(number)

    async def freeze(self, number: int) -> None:
        """Stops a worker for longer than its lease."""
        self.running[number].send_signal(signal.SIGSTOP)
        await asyncio.sleep(LEASE_SECONDS * 1.5)
        self.running[number].send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ends all."""
        for process in self.running:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def history(self) -> list[dict[str, Any]]:
        """What the workers noted; a line that was cut by a kill is not there."""
        found: list[dict[str, Any]] = []
        for path in self._place.glob("*.jsonl"):
            for line in path.read_text().splitlines():
                with suppress(json.JSONDecodeError):
                    found.append(json.loads(line))
        return found


async def chaos(place: Path, *, workers: int, tasks: int, letters: int, blows: Iterable[str], seed: int) -> None:
    """Runs it all and checks the history."""
    server, chance = Server.start(fsync="on", synchronous_commit="on", full_page_writes="on"), random.Random(seed)
    try:
        address = server.new_database()
        async with await SharedDatabase.open(address, holder="op/1/2/3/4", patience=END_SECONDS) as database:
            ids = await filled(database, tasks, letters)
            field = Field(address, place, workers)
            try:
                async with asyncio.timeout(END_SECONDS):
                    for blow in blows:
                        await asyncio.sleep(chance.uniform(0.2, 1.0))
                        if blow == "server":
                            await asyncio.to_thread(server.end, signal.SIGQUIT)
                            await asyncio.to_thread(server.run)
                        else:
                            await getattr(field, blow)(chance.randrange(workers))
                    await all_done(database, tasks)
            finally:
                field.stop()
            await check(database, field.history(), *ids)
    finally:
        server.stop()


async def filled(database: Database, tasks: int, letters: int) -> tuple[list[str], list[str]]:
    """A board and an inbox full of work; the ids of both."""
    await Registry(database).register(AGENT, OPERATOR, sha256="0" * 64, trust=TrustLevel.SENIOR)
    board, mailbox = Board(database, UuidIds()), Mailbox(database, SystemClock(), UuidIds())
    added = [(await board.add(f"{n}", OPERATOR, complexity=Complexity.SIMPLE)).id for n in range(tasks)]
    sent = [(await mailbox.send(OPERATOR, AGENT, f"{n}")).id for n in range(letters)]
    return added, sent


async def all_done(database: Database, tasks: int) -> None:
    """Returns when no work is left."""
    counted = "SELECT count(*) FROM tasks WHERE state = 'completed'"
    waiting = "SELECT count(*) FROM mails WHERE recipient = 'ada' AND partition <> 'archive'"
    while await database.read(  # noqa: ASYNC110 - the state is other processes'
        lambda reading: (reading.count(counted), reading.count(waiting))
    ) != (tasks, 0):
        await asyncio.sleep(0.3)


async def check(database: Database, history: list[dict[str, Any]], tasks: list[str], letters: list[str]) -> None:
    """0 lost, 0 doubled, 0 effects of a stale epoch."""

    def moves(reading: Reading) -> dict[str, list[tuple[str | None, str, int]]]:
        found: dict[str, list[tuple[str | None, str, int]]] = {task: [] for task in tasks}
        for row in reading.all("SELECT * FROM transitions ORDER BY position"):
            found[row["board_task"]].append((row["before"], row["after"], row["epoch"]))
        return found

    transitions = await database.read(moves)
    accepted = {(one["about"], one["epoch"]) for one in history if one["what"] == "submitted"}
    refused = {(one["about"], one["epoch"]) for one in history if one["what"] == "refused"}
    for task, log in transitions.items():
        assert all(one[1] == other[0] for one, other in pairwise(log)), "the chain of states is whole"
        assert [after for _, after, _ in log].count("completed") == 1, "completed once"
        epochs = [epoch for _, _, epoch in log]
        assert epochs == sorted(epochs), "no move of an earlier claim after a later one"
        handed_in = {(task, epoch) for _, after, epoch in log if after == "review"}
        assert len(handed_in) == 1
        assert {one for one in accepted if one[0] == task} <= handed_in, "who was told yes is in the log"
        assert not handed_in & refused, "who was told no is not"
        claims = [epoch for _, after, epoch in log if after == "in_progress"]
        assert len(claims) == len(set(claims)), "one claim an epoch"
    board = Board(database, UuidIds())
    done = await board.list({BoardState.COMPLETED}, limit=10_000)
    assert {one.summary for one in done} <= {f"epoch {epoch}" for log in transitions.values() for *_, epoch in log}
    answers = await database.read(
        lambda reading: reading.all("SELECT in_reply_to FROM mails WHERE sender = ?", (AGENT,))
    )
    assert Counter(str(row["in_reply_to"]) for row in answers) == dict.fromkeys(letters, 1)


@pytest.mark.usefixtures("postgres")  # skipped where there is none
async def test_kills_and_frozen_workers_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:
    """Three machines whose clocks are an hour apart; two kills, one freeze, one kill of the server."""
    blows = ("kill", "server", "freeze", "kill")
    await chaos(tmp_path, workers=3, tasks=60, letters=40, blows=blows, seed=1)


@pytest.mark.torture
@pytest.mark.usefixtures("postgres")
@pytest.mark.parametrize("seed", range(int(os.environ.get("ARTOO_CHAOS_RUNS", "20"))))
async def test_chaos(tmp_path: Path, seed: int) -> None:
    """Six workers on three machines, 2,000 tasks and 1,000 letters, a dozen blows in a random order."""
    chance = random.Random(seed)
    blows = chance.choices(["kill", "freeze", "server"], weights=[5, 3, 2], k=12)
    await chaos(tmp_path, workers=6, tasks=2_000, letters=1_000, blows=blows, seed=seed)
