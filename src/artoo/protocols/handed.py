"""A task that another program has asked for: what is known of it now, and what it waits for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ArtooError
from artoo.contracts.solution import FinalResult
from artoo.ports.confirm import Said
from artoo.tasklog.state import TaskState

logger = logging.getLogger(__name__)

UNANSWERED_SECONDS = 600.0
"""How long a question waits for an answer; then the answer is no."""

LONGEST_DOING = 2_000
"""Characters of what is under way. More than is shown, so that no secret is cut in two before it is taken out."""

Listener = Callable[[Envelope], Awaitable[None]]
"""Hears every message of a task in order, before the task is known to have come so far; the task's stream waits for
it, the task itself does not."""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """An open question of the gate."""

    request: ConfirmationRequest
    said: asyncio.Future[Said]

    def answer(self, said: Said) -> None:
        """Answer the question. Only the first answer counts."""
        if not self.said.done():
            self.said.set_result(said)

    def unanswered(self, why: str) -> None:
        """Refuse the question, because no one answers."""
        if not self.said.done():
            self.said.set_exception(TimeoutError(why))


@dataclass(slots=True)
class Fetching:
    """The download of the embedded model, for reports of the tasks that wait for it."""

    said: str = ""

    def __call__(self, done: int, total: int, phase: str) -> None:
        """Take note of progress in bytes; the first is logged, since no client shows it before it asks."""
        if not self.said:
            logger.warning("the model for this machine is fetched first: %d MB, once", total >> 20)
        self.said = f"{phase}: {done >> 20} of {total >> 20} MB" if done < total else ""


@dataclass(slots=True)
class HandedTask:
    """One task that runs in this process, or has run. `task_id` is empty until it has begun.

    `state` is what it is doing. `error` is why it could not run to a result. `told` counts what has happened: see
    `changed`. `unwanted`: it is to end as soon as it has begun; `interrupted`: it was asked to end.
    """

    task_id: str = ""
    request: str = ""
    state: TaskState = field(default_factory=TaskState)
    error: ArtooError | None = None
    told: int = 0
    unwanted: bool = False
    interrupted: bool = False
    listener: Listener | None = None
    fetching: Fetching = field(default_factory=Fetching)
    _question: OpenQuestion | None = None
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def question(self) -> OpenQuestion | None:
        """Return the open question."""
        return None if self._question is None or self._question.said.done() else self._question

    @property
    def result(self) -> FinalResult | None:
        """Return its result, once it has one."""
        return self.state.result

    @property
    def planned(self) -> int:
        """Count the subtasks of this round."""
        return 0 if self.state.round is None else len(self.state.round.subtasks)

    @property
    def done(self) -> int:
        """Count the ended subtasks of this round."""
        return 0 if self.state.round is None else self.state.round.ended

    @property
    def doing(self) -> str:
        """Describe what is under way: a download, the running or last call, else a subtask."""
        if self.fetching.said:
            return self.fetching.said
        present = () if self.state.round is None else tuple(self.state.round.subtasks.values())
        latest = next((one.ended for one in present if one.at_work and one.ended is not None), None)
        call = self.state.doing or latest
        if call is not None:
            return f"{call.tool}: {call.input}"[:LONGEST_DOING]
        return next((one.intent for one in present if not one.stage.ended), "")

    @property
    def ended(self) -> bool:
        """Check whether nothing more will happen."""
        return self.result is not None or self.error is not None

    async def changed(self, told: int) -> None:
        """Returns when more than `told` things have happened, or it has ended."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.told > told or self.ended)

    async def confirm(self, request: ConfirmationRequest) -> Said:
        """Ask the client that attends to the task. Implements `ports.confirm.Confirm`. Raises TimeoutError."""
        question = OpenQuestion(request, asyncio.get_running_loop().create_future())
        self._question = question
        await self._tell()
        try:
            async with asyncio.timeout(UNANSWERED_SECONDS):
                return await question.said
        finally:
            self._question = None

    async def hear(self, envelope: Envelope) -> None:
        """Takes in one message of its stream."""
        # The listener comes first, so that the editor knows the message before a waiting call continues.
        if self.listener is not None:
            await self.listener(envelope)
        self.task_id = envelope.task_id
        self.state.apply(envelope)
        self.request = self.state.request or self.request
        await self._tell()

    async def fail(self, error: ArtooError) -> None:
        """Record that it could not be run to a result."""
        self.error = error
        await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self.told += 1
            self._changed.notify_all()
