"""Blocking work in threads that can be abandoned.

A read from a dead network mount or a user's function may never return. A thread of the loop's own pool would then
hold up the end of the process; these are daemons, and there is a limit to how many can be stuck.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from artoo.contracts.errors import ToolError

P = ParamSpec("P")
T = TypeVar("T")

MAX_THREADS = 64
"""Threads at work or stuck at one time, in the whole process."""

_slots = threading.BoundedSemaphore(MAX_THREADS)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function` in a daemon thread and returns its value or raises its exception; one that is no Exception
    (`sys.exit`) as a RuntimeError that names it.

    Raises ToolError when too many are stuck.
    """
    # A thread cannot be stopped, so it goes on when the waiting task is cancelled.
    if not _slots.acquire(blocking=False):
        raise ToolError(f"{MAX_THREADS} tool threads are busy or stuck; wait for them, or restart artoo")
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)  # pyright: ignore[reportArgumentType]  # None only when T allows it

    def work() -> None:
        value: T | None = None
        error: BaseException | None = None
        try:
            value = context.run(function, *args, **kwargs)
        except BaseException as caught:  # noqa: BLE001  # handed to the waiting task, whatever it is
            error = caught
        finally:
            _slots.release()
        _tell(loop, settle, value, error)

    try:
        threading.Thread(target=work, daemon=True, name="artoo-tool").start()
    except RuntimeError as error:
        # The system allows no more threads.
        _slots.release()
        raise ToolError(f"no thread could be started for the tool ({error}); close other programs") from error
    return await future


def _tell(
    loop: asyncio.AbstractEventLoop,
    settle: Callable[[T | None, BaseException | None], None],
    value: T | None,
    error: BaseException | None,
) -> None:
    """Hand a result to its loop, if that still runs."""
    if error is not None and (isinstance(error, StopIteration) or not isinstance(error, Exception)):
        # What would end a coroutine, the loop or the waiting task means nothing of the kind in a thread.
        raised = RuntimeError(f"the function raised {type(error).__name__}: {error}".removesuffix(": "))
        raised.__cause__ = error
        error = raised
    try:
        loop.call_soon_threadsafe(settle, value, error)
    except RuntimeError:
        if not loop.is_closed():
            raise
