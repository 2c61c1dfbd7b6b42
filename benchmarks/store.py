"""Claims a second from a shared store, against a bare SKIP LOCKED loop in psycopg, in one run.

    python benchmarks/store.py [--store postgresql://…] [--workers 1 8 32] [--seconds 5] [--json]

Both sides use the same number of processes and threads, the same server and the same number of tasks. The bare loop
claims and nothing else; ours also chooses by attention, moves the task, and keeps the transition and its event.
Without --store a server is started with the tests' programs, with fsync on (on a RAM disk, where there is one).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import multiprocessing
import os
import platform
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psycopg

from artoo.agents.allocation import Allocation
from artoo.agents.holders import this_process
from artoo.agents.shared import SharedDatabase
from artoo.runtime.system import UuidIds
from artoo.store.address import StoreAddress, parse
from artoo.store.connecting import connect
from postgres_server import Server

PROCESSES = 4
WARM = 10
"""Claims of each worker before the clock runs."""
FILL = """
INSERT INTO tasks (id, state, priority, creator, open_to_all, project, queue, queued_us, created_at_us,
    updated_at_us, text)
SELECT gen_random_uuid()::text, 'pending', 'standard', 'operator', TRUE, '', n, 0, 0, 0, 'text'
FROM generate_series(1, %s) AS n
"""
BARE = """
UPDATE tasks SET state = 'in_progress', epoch = epoch + 1, claim = %s, claimant = 'ada', holder = 'bench',
    lease_us = now_us() + 60000000, assignee = 'ada'
WHERE id = (SELECT id FROM tasks WHERE state = 'pending' AND priority = 'standard' ORDER BY queue
            FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING *
"""


def bare(address: StoreAddress, seconds: float, counts: list[int]) -> None:
    """One worker that claims in a loop; the first claims, which prepare statements, are not counted."""
    with connect(address) as connection:
        done, until = -WARM, math.inf
        while time.monotonic() < until:
            if not done:
                until = time.monotonic() + seconds
            with connection.transaction():
                if connection.execute(BARE.encode(), (f"{done}",)).fetchone() is None:
                    raise AssertionError("no tasks are left; fill in more")
            done += 1
        counts.append(done)


async def ours(address: StoreAddress, seconds: float, counts: list[int], workers: int) -> None:
    """The same by the books."""

    async def work(database: SharedDatabase) -> None:
        allocation, done, until = Allocation(database, UuidIds()), -WARM, math.inf
        while time.monotonic() < until:
            if not done:
                until = time.monotonic() + seconds
            if await allocation.next("ada") is None:
                raise AssertionError("no tasks are left; fill in more")
            done += 1
        counts.append(done)

    async with await SharedDatabase.open(address, holder=this_process("bench"), most=workers) as database:
        await asyncio.gather(*(work(database) for _ in range(workers)))


def process(side: str, address: StoreAddress, seconds: float, workers: int, results: Any) -> None:
    """A process with some of the workers."""
    counts = list[int]()
    if side == "ours":
        asyncio.run(ours(address, seconds, counts, workers))
    else:
        threads = [threading.Thread(target=bare, args=(address, seconds, counts)) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    results.put(sum(counts))


def claims(side: str, address: StoreAddress, seconds: float, workers: int) -> float:
    """Claims a second by this many workers."""
    with connect(address) as connection:
        connection.execute("SET statement_timeout = 0")
        connection.execute(
            "INSERT INTO agents VALUES ('ada', 'standard', FALSE, '', 'x', 0, 0) ON CONFLICT DO NOTHING"
        )
        connection.execute("DELETE FROM events")
        connection.execute("UPDATE tasks SET state = 'archived' WHERE state <> 'archived'")
        connection.execute(FILL.encode(), (int(seconds * 3_000),))
        connection.execute("VACUUM ANALYZE tasks")
    context = multiprocessing.get_context("spawn")
    results: Any = context.Queue()
    shares = [workers // PROCESSES + (number < workers % PROCESSES) for number in range(PROCESSES)]
    running = [
        context.Process(target=process, args=(side, address, seconds, share, results)) for share in shares if share
    ]
    for one in running:
        one.start()
    total = sum(results.get(timeout=seconds + 120) for _ in running)
    for one in running:
        one.join()
    return total / seconds


def measured(address: StoreAddress, workers: list[int], seconds: float) -> dict[str, Any]:
    """All of it."""
    with connect(address) as connection:
        found = connection.execute("SELECT version() AS version").fetchone()
    rows = []
    for number in workers:
        rate = {side: claims(side, address, seconds, number) for side in ("bare", "ours")}
        rows.append({"workers": number, **rate, "ratio": rate["ours"] / rate["bare"]})
    return {
        "claims_a_second": rows,
        "server": found["version"] if found else "",
        "psycopg": psycopg.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
    }


def main() -> None:
    """Takes the arguments and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.store:
        result = measured(parse(given.store), given.workers, given.seconds)
    else:
        server = Server.start(fsync="on", synchronous_commit="on", full_page_writes="on", max_connections="120")
        try:
            result = measured(server.new_database(), given.workers, given.seconds)
        finally:
            server.stop()
    if given.json:
        print(json.dumps(result, indent=1))
        return
    for row in result["claims_a_second"]:
        print("{workers:3} workers: bare {bare:8.0f}/s, ours {ours:8.0f}/s, ratio {ratio:.2f}".format(**row))


if __name__ == "__main__":
    main()
