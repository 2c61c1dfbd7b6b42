"""Start tasks from the web UI, at most four at once.

They run in this process, and their questions are in the prompt queue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.conversation import TextDelta
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ArtooError, ConfigurationError
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import ToolCalled
from artoo.contracts.request import Turn
from artoo.ports.printing import OnOutput, Printed
from artoo.runtime.app.run_options import RunOptions
from artoo.tasklog.state import WORDS_KEPT
from artoo.words.shown import printable, uncoloured

if TYPE_CHECKING:  # it loads every role
    from artoo.runtime.app.artoo import Artoo

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 4
GRACE_SECONDS = 10.0
"""How long tasks may take to end when the server ends. Later the tasks are cancelled, and can be resumed."""


Open = Callable[[OnOutput], "AbstractAsyncContextManager[Artoo]"]


async def nobody_here(request: ConfirmationRequest) -> Consent:
    """Wait forever, because there is no terminal. The question is answered by the page or ends with the task."""
    await asyncio.Event().wait()
    return Consent.NO


@dataclass(frozen=True, slots=True, eq=False)
class _Wish:
    """A requested task. `resumes`: the id of the task that is resumed, instead of a new one."""

    text: str
    options: RunOptions
    begun: asyncio.Future[str]
    history: tuple[Turn, ...] = ()
    resumes: str = ""


@dataclass(slots=True)
class Live:
    """The text that a model is writing, and the last output lines of the running command. Neither is in the log."""

    words: str = ""
    printed: str = ""
    _of: tuple[str | None, str] = (None, "")
    """The subtask that writes, and the command that prints, because several may run at once."""

    def hear(self, envelope: Envelope) -> None:
        """Update both with a message of the task."""
        match envelope.payload:
            case TextDelta(text=text, subtask_id=subtask):
                before = self.words if subtask == self._of[0] else ""
                self.words, self._of = (before + text)[-WORDS_KEPT:], (subtask, self._of[1])
            case ModelCalled():
                self.words = ""
            case ToolCalled(act=act) if act == self._of[1]:
                self.printed = ""
            case _:
                pass

    def hear_printed(self, printed: Printed) -> None:
        """Replace the output lines."""
        self.printed = "\n".join(printable(uncoloured(line)) for line in printed.lines)
        self._of = self._of[0], printed.act


class Starter:
    """A starter of tasks that opens the runtime with the first task and keeps it open until `run` ends."""

    def __init__(self, open_runtime: Open) -> None:
        self._open = open_runtime
        self._wishes: asyncio.Queue[_Wish | None] = asyncio.Queue(MOST_AT_ONCE + 1)
        self._alive: set[_Wish] = set()
        """The requested tasks that have not ended yet."""
        self._running: set[asyncio.Task[None]] = set()
        self._closing = False
        self._live: dict[str, Live] = {}

    def live(self, task_id: str) -> Live | None:
        """Return the live texts of a task that runs in this process."""
        return self._live.get(task_id)

    def _hear_printed(self, printed: Printed) -> None:
        if (live := self._live.get(printed.task_id)) is not None:
            live.hear_printed(printed)

    async def start(
        self, text: str, options: RunOptions, history: Sequence[Turn] = (), *, resumes: str = ""
    ) -> str:
        """Start or resume a task and return its id. Raises ArtooError or OSError if the task cannot begin."""
        if self._closing:
            raise ConfigurationError("the page is being closed; begin it in a terminal: artoo run")
        if len(self._alive) >= MOST_AT_ONCE:
            raise ConfigurationError(f"{MOST_AT_ONCE} tasks of this page run already; wait for one, or stop it")
        begun = asyncio.get_running_loop().create_future()
        wish = _Wish(text, options, begun, tuple(history), resumes)
        self._alive.add(wish)
        self._wishes.put_nowait(wish)
        return await wish.begun

    async def run(self) -> None:
        """Run the requested tasks until `close`. If the runtime cannot be opened, the next request tries again."""
        while (wish := await self._wishes.get()) is not None:
            opened = False
            try:
                async with self._open(self._hear_printed) as runtime:
                    opened = True
                    await self._serve(runtime, wish)
            except (ArtooError, OSError) as error:
                if not opened:
                    self._end(wish, error)
                    continue
                logger.warning("the tasks of the page have ended, but what ran them could not be closed: %s", error)
            return

    def close(self) -> None:
        """Ask `run` to end. It interrupts running tasks, and cancels them after `GRACE_SECONDS`. Idempotent."""
        if not self._closing:
            self._closing = True
            self._wishes.put_nowait(None)

    async def _serve(self, runtime: Artoo, first: _Wish) -> None:
        wish: _Wish | None = first
        try:
            while wish is not None:
                task = asyncio.create_task(self._follow(runtime, wish))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
                wish = await self._wishes.get()
        finally:
            # Every running task gets the chance to end with a result before it is cancelled.
            runtime.interrupt()
            left = set(self._running)
            if left:
                await asyncio.wait(left, timeout=GRACE_SECONDS)
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)

    async def _follow(self, runtime: Artoo, wish: _Wish) -> None:
        """Read the messages of a task until its end, because a task whose stream is not read ends."""
        why: Exception = ConfigurationError("the task has ended before it began; `artoo log list` may know of it")
        task_id = ""
        try:
            async for envelope in _messages(runtime, wish):
                if not task_id:
                    task_id = envelope.task_id
                    self._live[task_id] = Live()
                    wish.begun.set_result(task_id)
                self._live[task_id].hear(envelope)
        except (ArtooError, OSError) as error:
            if task_id:
                logger.warning("a task of the page has failed: %s", error)
            why = error
        finally:
            self._live.pop(task_id, None)
            self._end(wish, why)

    def _end(self, wish: _Wish, why: Exception) -> None:
        """Remove the request, and raise the error `why` in `start` if the task has not begun."""
        self._alive.discard(wish)
        if not wish.begun.done():
            wish.begun.set_exception(why)


def _messages(runtime: Artoo, wish: _Wish) -> AsyncGenerator[Envelope]:
    if wish.resumes:
        return runtime.stream_resumed(wish.resumes)
    return runtime.stream(wish.text, history=wish.history, options=wish.options)
