"""Six workers on three machines, one server, and everything that can happen to them."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import get_args

from chaos_network import EVERYBODY, Network, Way
from chaos_worker import LEASE_SECONDS

from artoo.store.connecting import connect
from postgres_server import Server, set_clock

WORKER = Path(__file__).with_name("chaos_worker.py")
AGENTS = ("ada", "bob", "cyd")
"""One on each machine."""
MACHINES = len(AGENTS)

DEAF = ("sh", "-c", 'trap "" USR1; exec "$@"', "sh")
"""Until a worker listens for it, the signal by which its clock jumps ends it not."""

IMPATIENT = "sslmode=disable&connect_timeout=3&tcp_user_timeout=4000&keepalives_idle=2&keepalives_interval=1"
"""Dead connections are noticed in seconds instead of the half minute that people have."""

BLOWS = ("kill", "freeze", "server", "clock", "server_clock")
CUTS = ("cut_out", "cut_in", "cut_both")
BLOWS_FELL = "blows.txt"
"""One line of JSON each, in the directory of a run."""


class Field:
    """The workers, by number; those of one machine share its place, role, agent and wrong clock."""

    def __init__(self, server: Server, place: Path, workers: int, network: Network | None, seed: int) -> None:
        self.address = server.new_database()
        self.killed = 0
        self._server = server
        self._place = place
        self._network = network
        self._chance = random.Random(seed)
        self._locks = [asyncio.Lock() for _ in range(MACHINES + 1)]
        with connect(self.address) as connection:
            for machine in range(MACHINES):
                self.place(machine).mkdir()
                connection.execute(f"CREATE ROLE m{machine} LOGIN IN ROLE artoo_worker".encode())
        self._running = [self._start(number) for number in range(workers)]

    def place(self, machine: int) -> Path:
        """The directory of a machine; its home is in there."""
        return self._place / f"m{machine}"

    async def suffer(self, blows: Sequence[str], pause: float) -> None:
        """These things happen, one beginning before the other has ended; all of them have when this returns."""
        done: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": self._kill, "freeze": self._freeze, "server": self._restart, "clock": self._jump,
            "server_clock": self._shift,
        }  # fmt: skip
        for way in get_args(Way):
            done[f"cut_{way}"] = lambda way=way: self._cut(way)
        async with asyncio.TaskGroup() as group:
            for blow in blows:
                await asyncio.sleep(self._chance.uniform(0.2, 2.0) * pause)
                group.create_task(self._noted(blow, done[blow]()))

    async def _noted(self, blow: str, falls: Awaitable[None]) -> None:
        began = time.time()
        await falls
        line = json.dumps({"blow": blow, "began": began, "ended": time.time()})
        with (self._place / BLOWS_FELL).open("a", encoding="ascii") as file:
            file.write(line + "\n")

    def stop(self) -> None:
        """Ends all."""
        for process in self._running:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def ended(self) -> list[str]:
        """What those said that ended although nobody killed them."""
        return [
            self._said(number)
            for number, process in enumerate(self._running)
            if process.poll() not in (None, -signal.SIGKILL)
        ]

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        machine = number % MACHINES
        before = self._network.at_machine(machine) if self._network is not None else []
        url = self._url_at(machine)
        arguments = [url, str(self.place(machine)), str(number), AGENTS[machine], str(machine - 1)]
        with (self.place(machine) / f"{number}.txt").open("ab") as said:
            command = [*before, *DEAF, sys.executable, str(WORKER), *arguments]
            environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            return subprocess.Popen(command, stdout=said, stderr=said, env=environ)

    def _url_at(self, machine: int) -> str:
        """The store as this machine reaches it, with its own role."""
        database = self.address.url.partition("?")[0].rpartition("/")[2]
        if self._network is None:
            return f"postgresql://m{machine}@/{database}?host={self._server.folder}&{IMPATIENT}"
        return f"postgresql://m{machine}@{self._network.server}/{database}?{IMPATIENT}"

    def _said(self, number: int) -> str:
        path = self.place(number % MACHINES) / f"{number}.txt"
        return f"worker {number} ended by itself: {path.read_text('utf-8', 'replace')[-3_000:]}"

    async def _kill(self) -> None:
        """Ends a worker without a word, and starts it again."""
        number = self._chance.randrange(len(self._running))
        process = self._running[number]
        if process.poll() is None:
            process.kill()
            await asyncio.to_thread(process.wait)
            self._running[number] = self._start(number)
            self.killed += 1

    async def _freeze(self) -> None:
        """Stops a worker for longer than its lease."""
        process = self._chance.choice(self._running)
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(LEASE_SECONDS * self._chance.uniform(1.2, 3.0))
        process.send_signal(signal.SIGCONT)

    async def _jump(self) -> None:
        """A machine's clock is set: by an hour, or by two."""
        machine = self._chance.randrange(MACHINES)
        for process in self._running[machine::MACHINES]:
            process.send_signal(signal.SIGUSR1)

    async def _restart(self) -> None:
        """The server's power fails, and comes back."""
        async with self._locks[MACHINES]:
            await asyncio.to_thread(self._server.end, signal.SIGQUIT)
            await asyncio.sleep(self._chance.uniform(0.0, 2.0))
            await asyncio.to_thread(self._server.run)

    async def _shift(self) -> None:
        """The clock of the store, which leases go by, is an hour wrong for up to four leases, then right again."""
        async with self._locks[MACHINES]:
            await asyncio.to_thread(set_clock, self.address, self._chance.choice((-3_600, 3_600)))
            await asyncio.sleep(LEASE_SECONDS * self._chance.uniform(0.5, 4.0))
            await asyncio.to_thread(set_clock, self.address, 0)

    async def _cut(self, way: Way) -> None:
        """A machine's wire is cut for up to four leases, and mended."""
        assert self._network is not None
        machine = self._chance.randrange(MACHINES)
        async with self._locks[machine]:
            await asyncio.to_thread(self._network.cut, machine, way)
            await asyncio.sleep(LEASE_SECONDS * self._chance.uniform(0.5, 4.0))
            await asyncio.to_thread(self._network.mend, machine, way)


@asynccontextmanager
async def field(place: Path, workers: int, network: Network | None, seed: int) -> AsyncGenerator[Field]:
    """Opens it, with a server of its own that flushes what it has accepted; ended with everything in it."""
    durable = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
    if network is None:
        server = Server.start(**durable)
    else:
        durable["listen_addresses"] = network.server
        server = Server.start(inside=network.at_server(), open_to=EVERYBODY, **durable)
    try:
        opened = Field(server, place, workers, network, seed)
        try:
            yield opened
        finally:
            opened.stop()
    finally:
        server.stop()
