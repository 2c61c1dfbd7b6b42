"""Shared memory against the reference design: scan the tag index, decode every record.

    python benchmarks/memory.py --json [--size 1000000]

Ratios are taken inside one run, so that a busy machine cancels out. Targets:

    query_vs_scan      ≤ 0.005   one pair at 10⁶ records (the pair holds 1 %) / the reference scan of it
    query_1e6_vs_1e3   ≤ 6       the same query at 10⁶ and at 10³ records
    write_vs_plain     ≤ 3       a batch with its sums / the same batch with the seed's keys only
    caller_us          ≤ 20      what `write()` costs its caller, microseconds
    dreamer_slowdown   ≤ 2       a query while the Dreamer sweeps 10⁶ records / without it
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path

import orjson

from artoo.contracts.base import Contract
from artoo.contracts.memory import DreamReport, Megram, MegramState
from artoo.contracts.tags import Pair
from artoo.loops.slow.dreamer import Dreamer
from artoo.memory import reading, tables
from artoo.memory.codec import failed
from artoo.memory.service import SharedMemory
from artoo.memory.signal import DAY_US, microseconds
from artoo.memory.writer import BATCH
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.store.query import Engine, Query
from artoo.store.sqlite import SqliteEngine

NOW = datetime.now(UTC)
PAIRS = [Pair(f"tool:tool{tool}", f"path:/home/me/project/{place}") for tool in range(10) for place in range(10)]
TEXT = "what happened, what was tried, and what the tool said about it. " * 3
MICRO = 1e6
ROUNDS = 30


def experiences(count: int, seed: int = 7) -> Iterator[Megram]:
    """Megrams of the last 30 days over 100 pairs; one in fifty has faded."""
    source = random.Random(seed)
    for number in range(count):
        pair = source.choice(PAIRS)
        faded = source.random() < 0.02
        yield Megram(
            id=f"{number:012x}-{source.getrandbits(64):016x}",
            created_at=NOW - timedelta(days=source.uniform(6, 30)),
            space=pair.space,
            entity=pair.entity,
            content=TEXT,
            state=MegramState.REFINE if faded else MegramState.ACCEPT,
            f=0.1 if faded else 0.9,
            sigma=source.choice((1.0, 0.5, -1.0)),
            k=0.5 if faded else 0.05,
        )


def fill(engine: Engine, count: int) -> None:
    """Stores `count` experiences."""
    made = experiences(count)
    while batch := list(islice(made, 10_000)):
        engine.write(lambda query, megrams=batch: tables.add(query, megrams))


def add_plain(connection: sqlite3.Connection, megrams: list[Megram]) -> None:
    """The same batch as the seed's schema has it: record, tag index, level index; no sums."""
    add_two_keys(connection, megrams)
    connection.executemany("INSERT INTO level VALUES (?, ?)", [(each.level, each.id) for each in megrams])


def add_two_keys(connection: sqlite3.Connection, megrams: list[Megram]) -> None:
    """Record and tag index alone, which is as little as a pair query needs."""
    rows = [(each.id, orjson.dumps(record_of(each))) for each in megrams]
    connection.executemany("INSERT INTO record VALUES (?, ?)", rows)
    tags = [(each.space, each.entity, each.id) for each in megrams]
    connection.executemany("INSERT INTO tag VALUES (?, ?, ?)", tags)


def record_of(megram: Megram) -> dict[str, object]:
    """The seed's record."""
    names = ("id", "level", "created_at", "space", "entity", "content", "state", "f", "sigma", "k")
    return {name: getattr(megram, name) for name in names}


def seconds(work: Callable[[], object], repeat: int = 1) -> float:
    """Seconds that one call takes, over `repeat` of them."""
    begun = time.perf_counter()
    for _ in range(repeat):
        work()
    return (time.perf_counter() - begun) / repeat


def measure_queries(small: Engine, large: Engine) -> dict[str, float]:
    """Pair queries at both sizes and the scan, in turns, each time on another pair."""
    times: dict[str, list[float]] = {"small": [], "large": [], "scan": []}
    worst = 0.0
    for round_ in range(60):
        asking = Asking(PAIRS[(round_ * 37) % len(PAIRS)], microseconds(datetime.now(UTC)))
        times["small"].append(seconds(partial(small.read, asking.sums), 20))
        times["large"].append(seconds(partial(large.read, asking.sums), 20))
        if round_ % 4 == 0:
            times["scan"].append(seconds(partial(large.read, asking.scan)))
            exact, got = large.read(asking.scan), large.read(asking.sums)
            worst = max(worst, *(abs(a - b) / exact[0] for a, b in zip(exact, got, strict=True)))
    small_s, large_s, scan_s = (statistics.median(times[name]) for name in ("small", "large", "scan"))
    return {
        "query_vs_scan": large_s / scan_s,
        "query_1e6_vs_1e3": large_s / small_s,
        "query_us_small": small_s * MICRO,
        "query_us_large": large_s * MICRO,
        "scan_us": scan_s * MICRO,
        "error_of_attention": worst,
    }


@dataclass(frozen=True)
class Asking:
    """One pair's potentials, by the sums and by the reference scan."""

    pair: Pair
    now_us: int

    def sums(self, query: Query) -> tuple[float, float]:
        """As artoo answers."""
        (live,) = reading.sums(query, [self.pair], self.now_us)
        return live.attention, live.decision

    def scan(self, query: Query) -> tuple[float, float]:
        """As the reference design answers: every record of the pair is fetched, decoded and summed."""
        attention = decision = 0.0
        asked = "SELECT record FROM memory_megrams WHERE space = ? AND entity = ? AND level <> 'C'"
        for row in query.all(asked, tables.key_of(self.pair)):
            record = orjson.loads(row["record"])
            age = (self.now_us - microseconds(datetime.fromisoformat(record["created_at"]))) / DAY_US
            left = record["f"] * math.exp(-record["k"] * age)
            attention += left
            decision += record["sigma"] * left
        return attention, decision


def measure_writes(folder: Path) -> dict[str, float]:
    """Batches of the writer's size with and without sums, in turns, each one transaction on disk."""
    ratios: dict[str, list[float]] = {"plain": [], "two_keys": []}
    with ExitStack() as stack:
        ours = SqliteEngine(folder / "ours.db", tables.SCHEMA, failed)
        stack.callback(ours.close)
        plain, two_keys = (stack.enter_context(plain_sqlite(folder / f"{name}.db")) for name in ratios)
        ways: dict[str, Callable[[list[Megram]], object]] = {
            "ours": lambda batch: ours.write(lambda query: tables.add(query, batch)),
            "plain": lambda batch: in_transaction(plain, add_plain, batch),
            "two_keys": lambda batch: in_transaction(two_keys, add_two_keys, batch),
        }
        made = experiences(ROUNDS * BATCH, seed=11)
        for round_ in range(ROUNDS):
            batch = list(islice(made, BATCH))
            order = random.sample(list(ways), len(ways))
            timed = {name: seconds(partial(ways[name], batch)) for name in order}
            if round_ >= 4:
                for name, found in ratios.items():
                    found.append(timed["ours"] / timed[name])
    return {
        "write_vs_plain": statistics.median(ratios["plain"]),
        "write_vs_two_keys": statistics.median(ratios["two_keys"]),
    }


def in_transaction(
    connection: sqlite3.Connection, add: Callable[[sqlite3.Connection, list[Megram]], None], batch: list[Megram]
) -> None:
    """One batch in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    add(connection, batch)
    connection.execute("COMMIT")


@contextmanager
def plain_sqlite(path: Path) -> Generator[sqlite3.Connection]:
    """A file with the seed's three keys."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        """
        PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
        CREATE TABLE record (id TEXT PRIMARY KEY, value BLOB);
        CREATE TABLE tag (space TEXT, entity TEXT, id TEXT, PRIMARY KEY (space, entity, id)) WITHOUT ROWID;
        CREATE TABLE level (level TEXT, id TEXT, PRIMARY KEY (level, id)) WITHOUT ROWID;
        """
    )
    yield connection
    connection.close()


async def measure_caller(folder: Path) -> dict[str, float]:
    """`write()` as its caller feels it while the writer is at work."""
    memory = SharedMemory.open(folder, SystemClock(), UuidIds())
    costs: list[float] = []
    for megram in list(experiences(20_000, seed=13)):
        begun = time.perf_counter()
        memory.write(megram)
        costs.append(time.perf_counter() - begun)
    await memory.close()
    costs.sort()
    return {
        "caller_us": statistics.mean(costs) * MICRO,
        "caller_us_p50": costs[len(costs) // 2] * MICRO,
        "caller_us_p99": costs[len(costs) * 99 // 100] * MICRO,
    }


async def measure_dreamer(memory: SharedMemory) -> dict[str, float]:
    """Queries of a task while the Dreamer sweeps the store, against the same queries without it."""
    clock = SystemClock()
    reports: list[DreamReport] = []

    def heard(message: Contract) -> None:
        if isinstance(message, DreamReport):
            reports.append(message)

    before = await query_times(memory, until=lambda asked: asked >= 2_000)
    resident = anonymous_megabytes()
    dreamer = Dreamer(
        memory.dreams(),
        clock,
        UuidIds(),
        publish=heard,
        busy=lambda: False,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(dreamer.dream())
        during = await query_times(memory, until=lambda asked: bool(reports))
        grown = anonymous_megabytes() - resident
    after = await query_times(memory, until=lambda asked: asked >= 2_000)
    calm = before + after
    report = reports[0]
    return {
        "dreamer_slowdown": statistics.median(during) / statistics.median(calm),
        "dreamer_slowdown_mean": statistics.mean(during) / statistics.mean(calm),
        "dreamer_seconds": report.duration_ms / 1e3,
        "dreamer_examined": report.examined,
        "dreamer_forgotten": report.forgotten,
        "dreamer_memory_mb": grown,
        "query_async_us": statistics.median(calm) * MICRO,
    }


async def query_times(memory: SharedMemory, until: Callable[[int], bool]) -> list[float]:
    """Seconds of each query of a random pair, one every millisecond."""
    times: list[float] = []
    while not until(len(times)):
        pair = random.choice(PAIRS)
        begun = time.perf_counter()
        await memory.query_mk(*pair)
        times.append(time.perf_counter() - begun)
        await asyncio.sleep(0.001)
    return times


def anonymous_megabytes() -> float:
    """Memory of this process that is not a mapped file."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    return math.nan


def measure(size: int, folder: Path) -> dict[str, float]:
    """Everything, in one run."""
    small = SharedMemory.open(folder / "small", SystemClock(), UuidIds())
    large = SharedMemory.open(folder / "large", SystemClock(), UuidIds())
    fill(small.engine, 1_000)
    begun = time.perf_counter()
    fill(large.engine, size)
    found = {"records": float(size), "fill_us_per_record": (time.perf_counter() - begun) / size * MICRO}
    found |= measure_queries(small.engine, large.engine)
    found |= measure_writes(folder)
    found |= asyncio.run(measure_caller(folder / "caller"))
    found |= asyncio.run(measure_dreamer(large))
    found["megabytes"] = large.engine.read(lambda query: query.size("memory_")) / 1e6
    asyncio.run(small.close())
    asyncio.run(large.close())
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--size", type=lambda text: int(float(text)), default=1_000_000, help="records (default 1e6)"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(given.size, Path(folder))
    if given.json:
        json.dump(found, sys.stdout, indent=2)
        print()
        return
    for name, value in found.items():
        print(f"{name:24} {value:12.4g}")


if __name__ == "__main__":
    main()
