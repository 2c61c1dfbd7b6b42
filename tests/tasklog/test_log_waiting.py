"""When the task log writes: at once for whoever waits, else when a burst is over; a slow disk holds nobody up."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest
from log_doubles import TASK, ListedSpool, call, final, message

from artoo.bus.spool import SpoolingTap
from artoo.ports.spool import Gap
from artoo.tasklog.layout import task_directory
from artoo.tasklog.reader import TaskLogReader
from artoo.tasklog.writer import FEW, TaskLog


class Threads:
    """Remembers in which thread each write to a log happened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[bool] = []
        real = os.write

        def write(descriptor: int, data: bytes) -> int:
            if b'"kind"' in data:
                self.seen.append(threading.current_thread() is threading.main_thread())
            return real(descriptor, data)

        monkeypatch.setattr(os, "write", write)


def count(home: Path) -> int:
    return sum(1 for item in TaskLogReader(task_directory(home, TASK)) if not isinstance(item, Gap))


async def test_who_waits_for_a_few_messages_needs_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flush writes what is there itself; all who wait in the same turn of the loop share one write."""
    threads = Threads(monkeypatch)
    spool = ListedSpool()
    log = TaskLog(tmp_path, spool)
    async with asyncio.TaskGroup() as group:
        group.create_task(log.run())
        for number in range(3):
            spool.add(message(call(str(number)), number))
        await asyncio.gather(*(log.flush() for _ in range(5)))
        assert count(tmp_path) == 3
        assert threads.seen == [True]
        spool.finish()


@pytest.mark.parametrize("ending", [False, True])
async def test_much_and_endings_go_through_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: bool
) -> None:
    """More than a few messages, and the one whose fsync takes its time, do not hold up the loop."""
    threads = Threads(monkeypatch)
    spool = ListedSpool()
    log = TaskLog(tmp_path, spool)
    messages = [message(final())] if ending else [message(call(str(n)), n) for n in range(FEW + 1)]
    async with asyncio.TaskGroup() as group:
        group.create_task(log.run())
        for each in messages:
            spool.add(each)
        await log.flush()
        assert count(tmp_path) == len(messages)
        assert True not in threads.seen
        spool.finish()


async def test_a_burst_is_written_when_it_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits: what is said in one go is one write, and it comes without being asked for."""
    threads = Threads(monkeypatch)
    written = asyncio.Event()
    loop = asyncio.get_running_loop()
    real = TaskLog._count  # pyright: ignore[reportPrivateUsage]

    def counted(self: TaskLog, batch: list[object]) -> None:
        real(self, batch)  # pyright: ignore[reportArgumentType]
        loop.call_soon(written.set)

    monkeypatch.setattr(TaskLog, "_count", counted)
    spool = SpoolingTap(tmp_path)
    log = TaskLog(tmp_path, spool)
    async with asyncio.TaskGroup() as group:
        group.create_task(log.run())
        for number in range(10):
            spool(message(call(str(number)), number))
            await asyncio.sleep(0)
        await written.wait()
        assert count(tmp_path) == 10
        assert threads.seen == [True]
        spool.finish()
