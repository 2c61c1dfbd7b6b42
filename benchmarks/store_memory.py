"""Shared memory on PostgreSQL: what a look costs as it grows, and what a task costs more with the store.

    .venv/bin/python benchmarks/store_memory.py [--json] [--megrams N] [--tasks N] [--latency MS]

A server of its own (that of the tests: nothing is flushed, everything in memory), 100 pairs. Rows are multiplied in
the database, and `repair` makes their sums. Looks at the small and the large store take turns.

    potentials_growth    median of potentials_of one pair, 10^6 megrams / 10^3      target <= 2
    calibrate_growth     median of calibrate with 20 pairs, the same
    task_vs_embedded     median wall of a task with the store / without, tasks in turns; the scripted model takes
                         --latency for each of its two calls                       target <= 1.05
    task_bare_vs_embedded   the same with a model that takes no time: everything of the task is artoo's own work
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from pydantic import BaseModel

from artoo import Artoo, Config, RunOptions
from artoo.contracts.memory import Megram, MegramState
from artoo.contracts.tags import tool_pair
from artoo.llm.budget import Budget
from artoo.memory.service import SharedMemory
from artoo.memory.tables import COLUMNS
from artoo.ports.model import Answer, Question
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.store.address import StoreAddress
from artoo.store.connecting import connect
from artoo.testing import ScriptedModel
from artoo.testing.script import Asked
from postgres_server import Server

T = TypeVar("T", bound=BaseModel)

PAIRS = [tool_pair(f"t{number}") for number in range(100)]
SMALL = 1_000
LOOKS = 200
STEP = 50_000
ANSWERED = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}
PLAN = {"subtasks": [{"intent": "list it", "tool": "find_files", "success_criteria": [ANSWERED]}]}
CALL = {"tool": "find_files", "input": "*.txt", "is_final": True}


def answer(asked: Asked) -> dict[str, object]:
    """The same plan and call for every task; the Dreamer's rules are worded as well."""
    return {"Plan": PLAN, "ExecutorStep": CALL}.get(asked.contract, {"rule": "what worked works"})


class Slow(ScriptedModel):
    """A scripted model that takes its time."""

    seconds = 0.0

    async def ask(self, question: Question[T], *, meter: Budget | None = None) -> Answer[T]:
        """After a while."""
        await asyncio.sleep(self.seconds)
        return await super().ask(question, meter=meter)


async def fill(memory: SharedMemory) -> None:
    """A thousand megrams over all pairs."""
    for number in range(SMALL):
        pair = PAIRS[number % len(PAIRS)]
        megram = Megram(
            id=UuidIds().new(), created_at=datetime.now(UTC), space=pair.space, entity=pair.entity,
            content="what happened, in a sentence of some length", state=MegramState.ACCEPT, f=0.9, sigma=1, k=0.05,
        )  # fmt: skip
        memory.write(megram)
    await memory.flush()


def multiply(address: StoreAddress, megrams: int) -> None:
    """Each of the thousand becomes many, of the same pair, in statements of 50,000; sums are for `repair`."""
    names, each = ", ".join(COLUMNS[1:]), STEP // SMALL
    copy = f"""
    INSERT INTO memory_megrams (id, {names})
    SELECT md5(id || number), {names} FROM pg_temp.first, generate_series(%s::integer, %s::integer) AS number
    """.encode()
    with connect(address) as connection:
        connection.execute("SET statement_timeout = 0")
        connection.execute("CREATE TEMP TABLE first AS SELECT * FROM memory_megrams")
        for start in range(1, megrams // SMALL, each):
            connection.execute(copy, (start, min(start + each, megrams // SMALL) - 1))
        connection.execute("ANALYZE")


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Its wall time in seconds."""
    begun = time.perf_counter()
    await work()
    return time.perf_counter() - begun


async def growth(server: Server, place: Path, megrams: int) -> dict[str, float]:
    """Looks at both stores in turns."""
    stores: list[SharedMemory] = []
    addresses: list[StoreAddress] = []
    for name in ("small", "large"):
        addresses.append(server.new_database())
        memory = SharedMemory.shared(addresses[-1], place / name, SystemClock(), UuidIds())
        await fill(memory)
        stores.append(memory)
    begun = time.perf_counter()
    await asyncio.to_thread(multiply, addresses[1], megrams)
    await stores[1].books.repair()
    filled = time.perf_counter() - begun
    looks = {"potentials": list[list[float]]([[], []]), "calibrate": list[list[float]]([[], []])}
    for number in range(LOOKS + 10):
        pair = PAIRS[number * 7 % len(PAIRS)]
        for at, memory in enumerate(stores):
            looks["potentials"][at].append(
                await timed(lambda memory=memory, pair=pair: memory.potentials_of([pair]))
            )
            looks["calibrate"][at].append(
                await timed(lambda memory=memory: memory.calibrate("an intent", PAIRS[:20]))
            )
    found = {"megrams": float(megrams), "filled_seconds": filled}
    for name, (small, large) in looks.items():
        few, many = statistics.median(small[10:]), statistics.median(large[10:])
        found |= {f"{name}_small_ms": few * 1e3, f"{name}_large_ms": many * 1e3, f"{name}_growth": many / few}
    overview = (await stores[1].books.overview(datetime.now(UTC))).levels["M"]
    assert overview == megrams, overview
    for memory in stores:
        await memory.close()
    return found


async def tasks(server: Server, place: Path, count: int, latency: float) -> float:
    """Median wall of a task with the store over one without, tasks in turns."""
    (place / "project").mkdir(parents=True)
    (place / "project" / "a.txt").write_text("x\n")
    options = RunOptions(project=place / "project")
    walls: dict[str, list[float]] = {"embedded": [], "store": []}
    async with AsyncExitStack() as stack:
        opened: dict[str, Artoo] = {}
        for name, store in (("embedded", None), ("store", server.new_database().url)):
            model = stack.enter_context(Slow(answer))
            model.seconds = latency
            config = Config(workspace=place / name / "workspace", store=store).at_home(place / name / "home")
            opened[name] = await stack.enter_async_context(Artoo(config, environ={}, model=model))
        for number in range(count + 2):
            for name in ("embedded", "store") if number % 2 else ("store", "embedded"):
                artoo = opened[name]
                walls[name].append(
                    await timed(lambda artoo=artoo: artoo.run("list the text files", options=options))
                )
    return statistics.median(walls["store"][2:]) / statistics.median(walls["embedded"][2:])


async def measure(megrams: int, count: int, latency: float) -> dict[str, float]:
    """Everything, on one server."""
    server = await asyncio.to_thread(Server.start, shared_buffers="256MB", max_wal_size="512MB")
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = await growth(server, Path(folder), megrams)
            print(json.dumps(found), file=sys.stderr)  # the long part: not lost when what follows fails
            found["task_vs_embedded"] = await tasks(server, Path(folder) / "slow", count, latency)
            found["task_bare_vs_embedded"] = await tasks(server, Path(folder) / "bare", count, 0.0)
            return found
    finally:
        server.stop()


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--megrams", type=int, default=1_000_000)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--latency", type=float, default=500.0, help="milliseconds of each model call")
    given = parser.parse_args()
    found = asyncio.run(measure(given.megrams, given.tasks, given.latency / 1e3))
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        for name, value in found.items():
            print(f"{name:24} {value:10.3f}")


if __name__ == "__main__":
    main()
