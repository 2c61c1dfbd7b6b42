"""Pass time only while every task waits: minutes take milliseconds, and every run takes the same minutes."""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import ParamSpec, TypeVar, TypeVarTuple, Unpack

P = ParamSpec("P")
Ts = TypeVarTuple("Ts")
T = TypeVar("T")

_START = datetime(2026, 1, 1, tzinfo=UTC)


class _Jumping(selectors.DefaultSelector):
    """A selector that jumps to the next timer instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for real only when there is no timer: then a thread is all that can go on.

        While something is to be done at once, the system is not asked: in three turns of four, and what a thread
        has handed over is among it already.
        """
        if timeout is None:
            return super().select(None)
        if timeout <= 0.0:
            return []
        events = super().select(0)
        if not events:
            self.elapsed += timeout
        return events


class _Inline(ThreadPoolExecutor):
    """Run what would go to a thread at once: no time passes in it, and its order is always the same."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """See Executor."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - the caller that awaits the future gets it, as from a thread
            future.set_exception(error)
        return future


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time. Every timeout and sleep of asyncio's in it is virtual too."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)
        self.set_default_executor(_Inline())
        self._home = threading.get_ident()

    def time(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return self._jumping.elapsed

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Call from its own thread, as `_Inline` does, like `call_soon`: no waiter has to be woken."""
        if threading.get_ident() == self._home:
            return self.call_soon(callback, *args, context=context)
        return super().call_soon_threadsafe(callback, *args, context=context)


@lru_cache(maxsize=16)
def _moment(seconds: float) -> datetime:
    """Cache the moment: most messages are said in the same moment as the one before."""
    return _START + timedelta(seconds=seconds)


class LabClock:
    """The running virtual loop's time. Implements `ports.clock.Clock`."""

    def now(self) -> datetime:
        """See Clock."""
        return _moment(self.monotonic())

    def monotonic(self) -> float:
        """See Clock."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """See Clock."""
        await asyncio.sleep(max(0.0, seconds))
