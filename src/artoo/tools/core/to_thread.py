"""Run blocking work in daemon threads that can be abandoned.

A read from a dead network mount, or a user's function, may never return. In a thread of the event loop's own pool,
it would delay the exit of the process. Therefore these threads are daemons, for which the exit does not wait, and
their number is limited.
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
"""Maximum number of threads that are running or stuck at the same time in the whole process."""

_slots = threading.BoundedSemaphore(MAX_THREADS)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function` in a daemon thread. Return its value or raise its exception. An exception that is not a
    subclass of Exception (such as SystemExit) is raised as a RuntimeError with its name.

    Raises ToolError if too many threads are stuck.
    """
    # A thread cannot be stopped, so it continues after the task that waits for it is cancelled.
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
        # The operating system has refused to create another thread.
        _slots.release()
        raise ToolError(f"no thread could be started for the tool ({error}); close other programs") from error
    return await future


def _tell(
    loop: asyncio.AbstractEventLoop,
    settle: Callable[[T | None, BaseException | None], None],
    value: T | None,
    error: BaseException | None,
) -> None:
    """Pass a result to its event loop, if the loop is still running."""
    if error is not None and (isinstance(error, StopIteration) or not isinstance(error, Exception)):
        # If the waiting task raised one of these exceptions, it would end the coroutine or the event loop, so they
        # are replaced.
        raised = RuntimeError(f"the function raised {type(error).__name__}: {error}".removesuffix(": "))
        raised.__cause__ = error
        error = raised
    try:
        loop.call_soon_threadsafe(settle, value, error)
    except RuntimeError:
        if not loop.is_closed():
            raise
