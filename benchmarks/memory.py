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

import lmdb
import orjson

from artoo.contracts.base import Contract
from artoo.contracts.memory import DreamReport, Megram, MegramState
from artoo.contracts.tags import Pair
from artoo.loops.slow.dreamer import Dreamer
from artoo.memory import keys, reading
from artoo.memory.environment import Environment, Transaction
from artoo.memory.ledger import Ledger
from artoo.memory.maintenance import Maintenance
from artoo.memory.service import SharedMemory
from artoo.memory.signal import DAY_US, microseconds
from artoo.memory.writer import BATCH
from artoo.runtime.app.system import SystemClock, UuidIds

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


def fill(environment: Environment, count: int) -> None:
    """Stores `count` experiences."""
    made = experiences(count)
    while batch := list(islice(made, 10_000)):
        environment.write(lambda transaction, megrams=batch: add_all(transaction, megrams))


def add_all(transaction: Transaction, megrams: list[Megram]) -> None:
    """One batch as the writer stores it."""
    ledger = Ledger(transaction)
    for megram in megrams:
        ledger.add(megram)
    ledger.finish()


def add_plain(transaction: Transaction, megrams: list[Megram]) -> None:
    """The same batch as the seed's schema has it: record, tag index, level index; no sums."""
    add_two_keys(transaction, megrams)
    for megram in megrams:
        transaction.put(f"l|{megram.level}|{megram.id}".encode(), b"")


def add_two_keys(transaction: Transaction, megrams: list[Megram]) -> None:
    """Record and tag index alone, which is as little as a pair query needs."""
    for megram in megrams:
        record = {
            "id": megram.id,
            "level": megram.level,
            "created_at": megram.created_at,
            "space": megram.space,
            "entity": megram.entity,
            "content": megram.content,
            "state": megram.state,
            "f": megram.f,
            "sigma": megram.sigma,
            "k": megram.k,
        }
        transaction.put(f"m|{megram.id}".encode(), orjson.dumps(record))
        transaction.put(f"x|{megram.space}|{megram.entity}|{megram.id}".encode(), b"")


def seconds(work: Callable[[], object], repeat: int = 1) -> float:
    """Seconds that one call takes, over `repeat` of them."""
    begun = time.perf_counter()
    for _ in range(repeat):
        work()
    return (time.perf_counter() - begun) / repeat


def measure_queries(small: Environment, large: Environment) -> dict[str, float]:
    """Pair queries at both sizes and the scan, in turns, each time on another pair."""
    times: dict[str, list[float]] = {"small": [], "large": [], "scan": []}
    worst = 0.0
    for round_ in range(60):
        asking = Asking(keys.pair_part(PAIRS[(round_ * 37) % len(PAIRS)]), microseconds(datetime.now(UTC)))
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

    part: bytes
    now_us: int

    def sums(self, transaction: Transaction) -> tuple[float, float]:
        """As artoo answers."""
        live = reading.sums(transaction, self.part, self.now_us)
        return live.attention, live.decision

    def scan(self, transaction: Transaction) -> tuple[float, float]:
        """As the reference design answers: every record of the pair is fetched, decoded and summed."""
        prefix = b"x|" + self.part + b"|"
        attention = decision = 0.0
        for key in reading.keys_under(transaction, prefix):
            record = orjson.loads(transaction.get(b"m|" + key[len(prefix) :]) or b"{}")
            age = (self.now_us - microseconds(datetime.fromisoformat(record["created_at"]))) / DAY_US
            left = record["f"] * math.exp(-record["k"] * age)
            attention += left
            decision += record["sigma"] * left
        return attention, decision


def measure_writes(folder: Path) -> dict[str, float]:
    """Batches of the writer's size with and without sums, in turns, none of them waiting for the disk."""
    ways = {"ours": add_all, "plain": add_plain, "two_keys": add_two_keys}
    ratios: dict[str, list[float]] = {"plain": [], "two_keys": []}
    with ExitStack() as stack:
        files = {name: stack.enter_context(plain_lmdb(folder / name)) for name in ways}
        made = experiences(ROUNDS * BATCH, seed=11)
        for round_ in range(ROUNDS):
            batch = list(islice(made, BATCH))
            order = random.sample(list(ways), len(ways))
            timed = {name: timed_batch(files[name], ways[name], batch) for name in order}
            if round_ >= 4:
                for name, found in ratios.items():
                    found.append(timed["ours"] / timed[name])
    return {
        "write_vs_plain": statistics.median(ratios["plain"]),
        "write_vs_two_keys": statistics.median(ratios["two_keys"]),
    }


def timed_batch(
    environment: lmdb.Environment, add: Callable[[Transaction, list[Megram]], None], batch: list[Megram]
) -> float:
    """Seconds for one batch in one transaction."""
    begun = time.perf_counter()
    with environment.begin(write=True) as transaction:
        add(transaction, batch)
    return time.perf_counter() - begun


@contextmanager
def plain_lmdb(folder: Path) -> Generator[lmdb.Environment]:
    """An LMDB file that does not wait for the disk."""
    with lmdb.Environment(str(folder), map_size=1 << 30, sync=False) as environment:
        yield environment


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
        Maintenance(memory.environment, clock),
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
    """Memory of this process that is not the mapped file."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    return math.nan


def measure(size: int, folder: Path) -> dict[str, float]:
    """Everything, in one run."""
    small = SharedMemory.open(folder / "small", SystemClock(), UuidIds())
    large = SharedMemory.open(folder / "large", SystemClock(), UuidIds())
    fill(small.environment, 1_000)
    begun = time.perf_counter()
    fill(large.environment, size)
    found = {"records": float(size), "fill_us_per_record": (time.perf_counter() - begun) / size * MICRO}
    found |= measure_queries(small.environment, large.environment)
    found |= measure_writes(folder)
    found |= asyncio.run(measure_caller(folder / "caller"))
    found |= asyncio.run(measure_dreamer(large))
    found["megabytes"] = large.environment.size() / 1e6
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
