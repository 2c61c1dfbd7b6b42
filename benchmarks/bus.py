"""The stream against asyncio.Queue: eight subscribers and an audit tap that encodes and writes every message.

Both sides do the same job with the same messages: build the envelope (a UUIDv7, a time stamp, about 1 KB of
payload), bring it to eight subscribers that handle each message, and have a ninth encode it as a line of JSON and
write it to a file. The reference does it the plain way: a queue a consumer, and the audit consumer writes as it
reads. The stream is the real one: a role's port, the in-process bus, subscriptions, the spooling tap, and a
background consumer that writes in batches from a worker thread.

    throughput_vs_queue   messages a second until all eight subscribers have handled a burst     target ≥ 3
    latency_vs_queue      median time from publishing one message to its eighth delivery         target ≤ 0.75
    written_vs_queue      messages a second of processor time until the last line is in the file, all threads
    untapped_vs_queue     as throughput, but without the audit tap on either side

Ratios are taken inside one round, so that a noisy machine cancels out; printed is the median of all rounds. Time
that this thread waited for a processor is not counted (Linux).

    python benchmarks/bus.py [--json] [--messages 10000] [--paced 1000] [--rounds 9]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from artoo.bus.inprocess import InProcessBus
from artoo.bus.queues import WatchQueue
from artoo.bus.spool import SpoolingTap
from artoo.contracts.codec import encode_line
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import ToolCall, ToolCalled
from artoo.contracts.roles import Role
from artoo.runtime.app.system import SystemClock, UuidIds

SUBSCRIBERS = 8
YIELD_EVERY = 512
PAUSE_SECONDS = 0.05
TASK = "0198f000-0000-7000-8000-000000000000"
PAYLOAD = ToolCalled(
    subtask_id="0198f000-0000-7000-8000-000000000001",
    attempt=1,
    call=ToolCall(
        tool="shell",
        identity=("shell:ls",),
        target="ls",
        input="ls -la",
        output="x" * 700,
        total_bytes=700,
    ),
)


class Deliveries:
    """Counts deliveries down and says when the last one came."""

    def __init__(self, expected: int) -> None:
        self._left = expected
        self.done = asyncio.Event()

    def hit(self) -> None:
        self._left -= 1
        if self._left == 0:
            self.done.set()


class Side(Protocol):
    """What is measured: something that takes messages and counts deliveries into `deliveries`."""

    deliveries: Deliveries

    def publish(self) -> None: ...

    async def written(self) -> None: ...


class QueueSide:
    """One asyncio.Queue a consumer."""

    def __init__(self, file: IO[bytes] | None) -> None:
        self.deliveries = Deliveries(0)
        self._file = file
        self._clock, self._ids = SystemClock(), UuidIds()
        self._queues: list[asyncio.Queue[Envelope]] = [asyncio.Queue() for _ in range(SUBSCRIBERS)]
        self._audit: asyncio.Queue[Envelope] = asyncio.Queue()

    def publish(self) -> None:
        clock, ids = self._clock, self._ids
        envelope = Envelope(ids.new(), Role.EXECUTOR, TASK, clock.now(), PAYLOAD, None, None)
        for queue in self._queues:
            queue.put_nowait(envelope)
        if self._file is not None:
            self._audit.put_nowait(envelope)

    async def written(self) -> None:
        await self._audit.join()

    async def subscriber(self, number: int) -> None:
        queue = self._queues[number]
        while True:
            await queue.get()
            self.deliveries.hit()

    async def audit(self) -> None:
        assert self._file is not None
        while True:
            self._file.write(encode_line(await self._audit.get()))
            self._audit.task_done()


class BusSide:
    """The stream."""

    def __init__(self, directory: Path, file: IO[bytes] | None, capacity: int) -> None:
        self.deliveries = Deliveries(0)
        self._file = file
        bus = InProcessBus(SystemClock(), UuidIds())
        self._port = bus.port(Role.EXECUTOR, TASK)
        self._queues: list[WatchQueue] = [
            bus.subscribe(f"subscriber {n}", capacity=capacity) for n in range(SUBSCRIBERS)
        ]
        self._spool = SpoolingTap(directory, memory_limit=capacity)
        self._done = 0
        self._hurry = asyncio.Event()
        self._idle = asyncio.Event()
        if file is not None:
            bus.attach(self._spool)

    def publish(self) -> None:
        self._port.publish(PAYLOAD)

    async def written(self) -> None:
        while self._done < self._spool.accepted:
            self._hurry.set()
            self._idle.clear()
            await self._idle.wait()

    async def subscriber(self, number: int) -> None:
        async for _ in self._queues[number]:
            self.deliveries.hit()

    async def audit(self) -> None:
        assert self._file is not None
        while True:
            batch = await self._spool.receive_batch(4_096)
            await asyncio.to_thread(_write, self._file, [e for e in batch if isinstance(e, Envelope)])
            self._done += len(batch)
            self._idle.set()
            try:
                async with asyncio.timeout(PAUSE_SECONDS):
                    await self._hurry.wait()
                self._hurry.clear()
            except TimeoutError:
                continue


def _write(file: IO[bytes], envelopes: list[Envelope]) -> None:
    file.write(b"".join(map(encode_line, envelopes)))


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one side in one round: messages a second until delivered, messages a processor second until written,
    seconds of latency."""

    delivered: float
    written: float
    latency: float


@asynccontextmanager
async def running(side: QueueSide | BusSide, *, tapped: bool) -> AsyncGenerator[None]:
    """The side with its consumers."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(side.subscriber(number)) for number in range(SUBSCRIBERS)]
        if tapped:
            tasks.append(group.create_task(side.audit()))
        await asyncio.sleep(0)
        yield
        for task in tasks:
            task.cancel()


async def measure(side: QueueSide | BusSide, messages: int, paced: int, *, tapped: bool) -> Figures:
    """One warm-up burst, one burst, then one message at a time."""
    async with running(side, tapped=tapped):
        await burst(side, messages // 10)
        gc.collect()
        delivered, written = await burst(side, messages)
        latencies: list[float] = []
        for _ in range(paced):
            side.deliveries = Deliveries(SUBSCRIBERS)
            start = time.perf_counter()
            side.publish()
            await side.deliveries.done.wait()
            latencies.append(time.perf_counter() - start)
    return Figures(messages / delivered, messages / written, statistics.median(latencies))


async def burst(side: Side, messages: int) -> tuple[float, float]:
    """Seconds until everything was delivered, and processor seconds until everything was written."""
    side.deliveries = Deliveries(messages * SUBSCRIBERS)
    clock = running_time()
    start, processor = clock(), time.process_time()
    for number in range(messages):
        side.publish()
        if number % YIELD_EVERY == YIELD_EVERY - 1:
            await asyncio.sleep(0)
    await side.deliveries.done.wait()
    delivered = clock() - start
    await side.written()
    return delivered, time.process_time() - processor


def running_time() -> Callable[[], float]:
    """A clock that stands still while this thread waits for a processor."""
    schedstat = Path("/proc/thread-self/schedstat")
    if not schedstat.exists():
        return time.perf_counter
    return lambda: time.perf_counter() - int(schedstat.read_text(encoding="utf-8").split()[1]) / 1e9


def one_round(directory: Path, messages: int, paced: int) -> dict[str, float]:
    """Both sides, with and without the tap, one after the other."""
    figures: dict[tuple[str, bool], Figures] = {}
    for tapped in (True, False):
        for name in ("queue", "bus"):
            with (directory / name).open("wb") as file:
                figures[name, tapped] = asyncio.run(
                    _one_side(name, directory, file if tapped else None, messages, paced)
                )
    queue, bus = figures["queue", True], figures["bus", True]
    return {
        "throughput_vs_queue": bus.delivered / queue.delivered,
        "latency_vs_queue": bus.latency / queue.latency,
        "written_vs_queue": bus.written / queue.written,
        "untapped_vs_queue": figures["bus", False].delivered / figures["queue", False].delivered,
        "messages_per_second": bus.delivered,
        "queue_messages_per_second": queue.delivered,
        "latency_us": bus.latency * 1e6,
        "queue_latency_us": queue.latency * 1e6,
    }


async def _one_side(name: str, directory: Path, file: IO[bytes] | None, messages: int, paced: int) -> Figures:
    side = QueueSide(file) if name == "queue" else BusSide(directory, file, messages + 1)
    return await measure(side, messages, paced, tapped=file is not None)


def main() -> None:
    """Runs the rounds and prints the medians."""
    parser = argparse.ArgumentParser(description="The stream against asyncio.Queue.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--paced", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        rounds = [one_round(Path(directory), options.messages, options.paced) for _ in range(options.rounds)]
    result = {name: round(statistics.median(r[name] for r in rounds), 3) for name in rounds[0]}
    if options.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:28} {value:>14,.3f}")


if __name__ == "__main__":
    main()
