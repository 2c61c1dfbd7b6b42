"""Blocking work in threads that can never keep the process alive.

`asyncio.to_thread` and executors join their threads when the interpreter ends, and a generation runs for minutes.
These threads are daemons, and `stop_all` (run at exit) tells them to stop and waits a bounded time, so that none of
them is inside llama.cpp when the interpreter is taken down.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")

LAST_WAIT_SECONDS = 30.0
REPORT_SECONDS = 0.2


class Stop:
    """A request to stop that work looks at between its steps."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def __bool__(self) -> bool:
        return self._event.is_set()


_running: dict[threading.Thread, Stop] = {}
_running_lock = threading.Lock()


def run_in_thread(work: Callable[[Stop], Result], *, name: str) -> tuple[Future[Result], Stop]:
    """Starts `work` in a daemon thread. Its result or error arrives in the future; the stop is a request."""
    future: Future[Result] = Future()
    future.set_running_or_notify_cancel()
    stop = Stop()

    def main() -> None:
        try:
            result = work(stop)
        except BaseException as error:  # noqa: BLE001 - handed on whole to whoever waits
            future.set_exception(error)
        else:
            future.set_result(result)
        finally:
            with _running_lock:
                _running.pop(threading.current_thread(), None)

    thread = threading.Thread(target=main, name=name, daemon=True)
    with _running_lock:
        _running[thread] = stop
    thread.start()
    return future, stop


async def in_thread(work: Callable[[Stop, Callable[[int], None]], Result], report: Callable[[int], None]) -> Result:
    """Run `work(stop, done)` in a thread; what it tells `done` reaches `report` in this one, a few times a second.

    When cancelled, asks the work to stop and waits for it, so that a lock held by the caller covers all of it.
    """
    latest = -1

    def done(amount: int) -> None:
        nonlocal latest
        latest = amount

    future, stop = run_in_thread(lambda stop: work(stop, done), name="artoo-model-file")
    waiting = asyncio.wrap_future(future)
    try:
        while not waiting.done():
            await asyncio.wait([waiting], timeout=REPORT_SECONDS)
            if latest >= 0:
                report(latest)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([waiting])
        waiting.exception()
        raise
    return waiting.result()


def stop_all(wait_seconds: float = LAST_WAIT_SECONDS) -> None:
    """Asks all threads to stop and waits for them, at most `wait_seconds` in total."""
    with _running_lock:
        running = dict(_running)
    for stop in running.values():
        stop.set()
    deadline = time.monotonic() + wait_seconds
    for thread in running:
        thread.join(max(0.0, deadline - time.monotonic()))
