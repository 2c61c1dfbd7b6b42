"""Control of a task on this terminal, by typed messages and by interruption of its turn.

Reference: SPEC section 3.5.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from artoo.cli.conversation.confirm import Dialogue
from artoo.cli.display.task_state import TaskView
from artoo.cli.results.redact_output import say
from artoo.contracts.errors import ConfigurationError

if TYPE_CHECKING:  # not imported above, because the module loads every role
    from artoo.runtime.app.artoo import Artoo

BY = "terminal"
INTERRUPTED = "Interrupted. What should be different? (Enter: go on, Ctrl-C: end the task) "


class Steering:
    """Controls one running task from the terminal. `stop` asks the task to end."""

    def __init__(self, runtime: Artoo, view: TaskView, stop: Callable[[], None]) -> None:
        self._runtime = runtime
        self._view = view
        self._held = asyncio.Event()
        self._can_answer = False
        self.stop = stop

    @property
    def is_held(self) -> bool:
        """Return whether the task waits for a message."""
        return self._held.is_set()

    def hold(self) -> bool:
        """Interrupt the current turn. Returns False if the user could not send a message afterwards, or if the task
        already waits for one."""
        view = self._view
        # Without a way to send a message, the interrupted task would wait for ever.
        busy = not view.state.task_id or view.question or view.stopping or view.state.result is not None
        if not self._can_answer or busy or self._held.is_set():
            return False
        try:
            self._runtime.hold(view.state.task_id, by=BY)
        except ConfigurationError:
            # the task has just ended
            return False
        self._held.set()
        return True

    def send(self, text: str) -> None:
        """Send a message to the task. If that fails, print the reason."""
        self._held.clear()
        try:
            self._runtime.send(text, self._view.state.task_id, by=BY)
        except ConfigurationError as error:
            say(str(error))

    @asynccontextmanager
    async def asking(self, dialogue: Dialogue | None) -> AsyncGenerator[None]:
        """While the block runs, ask for a message with `dialogue` after each interruption of a turn."""
        if dialogue is None:
            yield
            return
        self._can_answer = True
        async with beside(self._ask(dialogue)):
            yield

    @asynccontextmanager
    async def typed(self, reading: Coroutine[None, None, None]) -> AsyncGenerator[None]:
        """While the block runs, run `reading`, which sends the lines that the user types."""
        self._can_answer = True
        async with beside(reading):
            yield

    async def _ask(self, dialogue: Dialogue) -> None:
        while True:
            await self._held.wait()
            said = await dialogue.message(self._view.text(INTERRUPTED))
            if said is None:
                self.stop()
                return
            self.send(said)


@asynccontextmanager
async def beside(work: Coroutine[None, None, None]) -> AsyncGenerator[None]:
    """Run `work` until the block ends, and then cancel it. If `work` fails, its error is raised after the block."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
