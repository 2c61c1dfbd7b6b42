"""Claims a second from a shared store, against a bare SKIP LOCKED loop in psycopg, in one run.

    python benchmarks/store.py [--store postgresql://…] [--workers 1 8 32] [--seconds 5] [--turns 2] [--json]

Both sides use the same number of processes and connections, the same server and number of tasks, in turns. The bare
loop claims in a transaction and does nothing else; ours also chooses by attention, moves the task, and keeps the
transition and its event. `cpu_us` is the processor time of client and server together for one claim: what else the
machine does changes it less than it changes the rate. Only with a server of our own.
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
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psutil
import psycopg

from artoo.agents.board.claim_holders import this_process
from artoo.agents.board.next_task import Allocation
from artoo.agents.storage.database import Database
from artoo.cluster.cluster import open_store
from artoo.runtime.app.system import UuidIds
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

    async def work(database: Database) -> None:
        allocation, done, until = Allocation(database, UuidIds()), -WARM, math.inf
        while time.monotonic() < until:
            if not done:
                until = time.monotonic() + seconds
            if await allocation.next("ada") is None:
                print("no tasks are left; fill in more", file=sys.stderr)
                return
            done += 1
        counts.append(done)

    async with await open_store(address, holder=this_process("bench"), most=workers) as database:
        await asyncio.gather(*(work(database) for _ in range(workers)))


def process(side: str, address: StoreAddress, seconds: float, workers: int, results: Any) -> None:
    """A process with some of the workers: how many claims they made, and the processor time that it took."""
    counts, begun = list[int](), time.process_time()
    if side == "ours":
        asyncio.run(ours(address, seconds, counts, workers))
    else:
        threads = [threading.Thread(target=bare, args=(address, seconds, counts)) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    results.put((sum(counts) if len(counts) == workers else None, time.process_time() - begun))


def claims(side: str, address: StoreAddress, seconds: float, workers: int, server: int | None) -> tuple[int, float]:
    """Claims by this many workers, and seconds of processor time of all."""
    with connect(address) as connection:
        connection.execute("SET statement_timeout = 0")
        connection.execute(
            "INSERT INTO agents VALUES ('ada', 'standard', FALSE, '', 'x', 0, 0) ON CONFLICT DO NOTHING"
        )
        connection.execute("DELETE FROM events")
        connection.execute("UPDATE tasks SET state = 'archived' WHERE state <> 'archived'")
        connection.execute(FILL.encode(), (int(seconds * 12_000),))
        connection.execute("VACUUM ANALYZE tasks")
    context = multiprocessing.get_context("spawn")
    results: Any = context.Queue()
    shares = [workers // PROCESSES + (number < workers % PROCESSES) for number in range(PROCESSES)]
    running = [
        context.Process(target=process, args=(side, address, seconds, share, results)) for share in shares if share
    ]
    before = used(server)
    for one in running:
        one.start()
    told = [results.get(timeout=seconds + 300) for _ in running]
    for one in running:
        one.join()
    if any(count is None for count, _ in told):
        raise SystemExit("a worker found no task, or failed: what it said stands above")
    return sum(count for count, _ in told), sum(cpu for _, cpu in told) + used(server) - before


def used(server: int | None) -> float:
    """Seconds of processor time of a server and its children, those that have ended too."""
    if server is None:
        return 0.0
    main = psutil.Process(server)
    total = sum(main.cpu_times()[:4])
    for child in main.children():
        with suppress(psutil.NoSuchProcess):
            total += sum(child.cpu_times()[:2])
    return total


def in_turns(address: StoreAddress, workers: int, seconds: float, turns: int, server: int | None) -> dict[str, Any]:
    """Claims a second of both sides, each turn of one beside one of the other."""
    done, cpu = {"bare": 0, "ours": 0}, {"bare": 0.0, "ours": 0.0}
    for turn in range(turns):
        for side in sorted(done, reverse=turn % 2 == 1):
            count, spent = claims(side, address, seconds, workers, server)
            done[side] += count
            cpu[side] += spent
    rate = {side: count / seconds / turns for side, count in done.items()}
    row: dict[str, Any] = {"workers": workers, **rate, "ratio": rate["ours"] / rate["bare"]}
    if server is not None:
        each = {side: cpu[side] / (done[side] + workers * turns * WARM) * 1e6 for side in done}
        row["cpu_us"] = {**each, "ratio": each["bare"] / each["ours"]}
    return row


def measured(
    address: StoreAddress, workers: list[int], seconds: float, turns: int, server: int | None
) -> dict[str, Any]:
    """All of it."""
    with connect(address) as connection:
        found = connection.execute("SELECT version() AS version").fetchone()
    load = os.getloadavg()[0]
    rows = [in_turns(address, number, seconds, turns, server) for number in workers]
    return {
        "claims_a_second": rows,
        "server": found["version"] if found else "",
        "psycopg": psycopg.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_before": load,
        "load_after": os.getloadavg()[0],
    }


def main() -> None:
    """Takes the arguments and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.store:
        result = measured(parse(given.store), given.workers, given.seconds, given.turns, None)
    else:
        server = Server.start(fsync="on", synchronous_commit="on", full_page_writes="on", max_connections="120")
        try:
            result = measured(server.new_database(), given.workers, given.seconds, given.turns, server.process_id)
        finally:
            server.stop()
    if given.json:
        print(json.dumps(result, indent=1))
        return
    for row in result["claims_a_second"]:
        print("{workers:3} workers: bare {bare:8.0f}/s, ours {ours:8.0f}/s, ratio {ratio:.2f}".format(**row))
        if "cpu_us" in row:
            print(
                "    of processor time: bare {bare:.0f} µs, ours {ours:.0f} µs, ratio {ratio:.2f}".format(
                    **row["cpu_us"]
                )
            )


if __name__ == "__main__":
    main()
