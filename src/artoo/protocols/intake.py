"""Start and find tasks of other programs, with the limits on running and retained ones.

    client ─ MCP, ACP, A2A ─► Intake ─► Artoo ─► the stream
                                 └─► HandedTask: the state, the open question and the result of one task

By the intake, clients can do only what the command line can do too. A task continues when its client disconnects.
When the intake is closed, it interrupts the running tasks. Each of them ends with a result that says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace

from artoo.contracts.confirmation import Words
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ArtooError, ConfigurationError, ProtocolError
from artoo.contracts.recording import AskedBy
from artoo.contracts.request import Turn
from artoo.protocols.handed import Fetching, HandedTask, Listener
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.app.caller import Caller
from artoo.runtime.app.run_options import RunOptions
from artoo.runtime.config.model import Config
from artoo.tools.mcp.servers import McpServer

logger = logging.getLogger(__name__)

MOST_RUNNING = 8
"""Maximum number of tasks that run for clients at the same time."""
MOST_KEPT = 100
"""Maximum number of ended tasks that are kept in memory. Earlier tasks are read from their logs."""
ENDING_SECONDS = 20.0
"""Number of seconds that tasks have to end when the intake is closed. After that, they are cancelled and can be
resumed."""
LONGEST_REQUEST = 256 * 1024
"""Maximum number of characters of a request."""


@dataclass(slots=True)
class Intake:
    """The tasks of all clients of one process. `fetching` is the progress of the embedded model's download."""

    runner: Artoo
    config: Config
    _group: asyncio.TaskGroup
    fetching: Fetching
    _tasks: dict[str, HandedTask] = field(default_factory=dict[str, HandedTask])
    _playing: dict[asyncio.Task[None], HandedTask] = field(default_factory=dict["asyncio.Task[None]", HandedTask])
    _closed: bool = False

    async def begin(
        self,
        text: str,
        options: RunOptions,
        asked_by: AskedBy,
        *,
        asks: bool,
        history: tuple[Turn, ...] = (),
        listener: Listener | None = None,
        servers: tuple[McpServer, ...] = (),
    ) -> HandedTask:
        """Start a task, and return when it has an id.

        `asks`: true if a user at the client answers questions. `servers`: MCP servers that the client has
        configured.

        Raises ConfigurationError if the task cannot be run. In that case nothing was started.
        """
        if len(text) > LONGEST_REQUEST:
            raise ConfigurationError(
                f"the request is longer than {LONGEST_REQUEST:,} characters; name a file instead"
            )
        handed = HandedTask(request=text, listener=listener, fetching=self.fetching)
        caller = Caller(asked_by, handed.confirm if asks else None, servers)
        stream = self.runner.stream(text, history=history, options=replace(options, caller=caller))
        return await self._begun(handed, stream)

    async def resume(
        self,
        task_id: str | None,
        asked_by: AskedBy,
        *,
        asks: bool,
        listener: Listener | None = None,
        servers: tuple[McpServer, ...] = (),
    ) -> HandedTask:
        """Resume a task that was interrupted or whose process died. If `task_id` is None, the latest such task is
        resumed.

        Raises ConfigurationError.
        """
        handed = HandedTask(listener=listener, fetching=self.fetching)
        caller = Caller(asked_by, handed.confirm if asks else None, servers)
        return await self._begun(handed, self.runner.stream_resumed(task_id, caller=caller))

    def find(self, task_id: str) -> HandedTask | None:
        """Find a task of this process by the beginning of its id. Returns None if no task has this beginning, or if
        several have it."""
        if task_id in self._tasks:
            return self._tasks[task_id]
        found = [one for known, one in self._tasks.items() if task_id and known.startswith(task_id)]
        return found[0] if len(found) == 1 else None

    def running(self) -> tuple[HandedTask, ...]:
        """List the running tasks, oldest first."""
        return tuple(one for one in self._playing.values() if one.task_id)

    def interrupt(self, task: HandedTask) -> None:
        """Ask a task to end now. The task ends with a result that says so, and its work is kept."""
        if task.ended or task.interrupted:
            return
        if task.question is not None:
            task.question.unanswered("the task was asked to end")
        if task.task_id:
            task.interrupted = True
            self.runner.interrupt(task.task_id)
        else:
            task.unwanted = True

    def send(self, task: HandedTask, text: str, by: str) -> None:
        """Send a text to a running task. If the task has asked for a text, it is the answer. Otherwise it is a
        message for the next turn.

        Raises ConfigurationError if the text is empty or too long, or if the task is not running.
        """
        if not text.strip():
            raise ConfigurationError("the message is empty")
        if len(text) > LONGEST_REQUEST:
            raise ConfigurationError(f"a message has at most {LONGEST_REQUEST:,} characters; name a file instead")
        question = task.question
        if question is not None and question.request.wants != "consent":
            question.answer(Words(text=text.strip()))
        elif task.ended or not task.task_id:
            raise ConfigurationError(f"task {task.task_id} does not run now")
        else:
            self.runner.send(text, task.task_id, by=by)

    async def _begun(self, handed: HandedTask, messages: AsyncGenerator[Envelope, None]) -> HandedTask:
        if self._closed or len(self._playing) >= MOST_RUNNING:
            await messages.aclose()
            why = "artoo is ending" if self._closed else f"{MOST_RUNNING} tasks run already; wait for one of them"
            raise ConfigurationError(f"{why}; nothing was started")
        playing = self._group.create_task(self._play(handed, messages))
        self._playing[playing] = handed
        playing.add_done_callback(self._played)
        try:
            await handed.changed(0)
        except asyncio.CancelledError:
            # The client disconnected before the task had an id, so no one could ask for the task later.
            self.interrupt(handed)
            raise
        if not handed.task_id and handed.error is not None:
            raise handed.error
        return handed

    async def _play(self, handed: HandedTask, messages: AsyncGenerator[Envelope, None]) -> None:
        try:
            await self._heard(handed, messages)
        except ArtooError as error:
            await handed.fail(error)
        except Exception as error:
            # A bug ends this task, but not the tasks of other clients.
            logger.exception("a task of a client has failed: %s", handed.task_id or "before it began")
            await handed.fail(ArtooError(f"a defect in artoo, {type(error).__name__}; its own log tells where"))

    async def _heard(self, handed: HandedTask, messages: AsyncGenerator[Envelope, None]) -> None:
        async with aclosing(messages):
            async for envelope in messages:
                self._tasks[envelope.task_id] = handed
                await handed.hear(envelope)
                if handed.unwanted:
                    self.interrupt(handed)
        if handed.result is None:
            raise ProtocolError(f"task {handed.task_id} ended without a result; its log tells where")

    def _played(self, playing: asyncio.Task[None]) -> None:
        del self._playing[playing]
        # Tasks that have ended are read from their logs later, so that the use of memory stays limited.
        ended = [task_id for task_id, one in self._tasks.items() if one.ended]
        for task_id in ended[: max(0, len(ended) - MOST_KEPT)]:
            del self._tasks[task_id]

    async def close(self) -> None:
        """Interrupt all tasks. Cancel those that have not ended after `ENDING_SECONDS`."""
        self._closed = True
        left = dict(self._playing)
        for task in left.values():
            self.interrupt(task)
        if left:
            await asyncio.wait(left, timeout=ENDING_SECONDS)
        for playing in left:
            playing.cancel()


@asynccontextmanager
async def serving_intake(config: Config) -> AsyncGenerator[Intake]:
    """Open a runtime, and an intake that uses it, while the block runs. Afterwards, tasks that are still running
    are ended."""
    fetching = Fetching()
    async with Artoo(config, on_fetch=fetching) as artoo, asyncio.TaskGroup() as group:
        intake = Intake(artoo, config, group, fetching)
        try:
            yield intake
        finally:
            await intake.close()
