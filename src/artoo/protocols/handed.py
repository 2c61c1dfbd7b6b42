"""A task that another program started, with its open question, and the time until silence counts as a refusal."""

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
"""Number of seconds that a question waits for an answer. After that, it counts as refused."""

LONGEST_DOING = 2_000
"""Number of characters of the description of the present operation. It is more than is shown, so that a secret is
not cut in two before it is redacted."""

Listener = Callable[[Envelope], Awaitable[None]]
"""Receives every message of a task in order, before the message changes `HandedTask`. The task's stream waits for
this callback, but the task itself does not."""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question for approval that a task has asked, and a future for its answer."""

    request: ConfirmationRequest
    said: asyncio.Future[Said]

    def answer(self, said: Said) -> None:
        """Answer the question. Only the first answer is accepted."""
        if not self.said.done():
            self.said.set_result(said)

    def unanswered(self, why: str) -> None:
        """Refuse the question, because no user can answer it. `why` becomes the text of the error."""
        if not self.said.done():
            self.said.set_exception(TimeoutError(why))


@dataclass(slots=True)
class Fetching:
    """The progress of the embedded model's download. Reports of tasks that wait for it contain the progress."""

    said: str = ""

    def __call__(self, done: int, total: int, phase: str) -> None:
        """Record the number of bytes done. The start is logged too, because clients see the progress only when they
        ask for it."""
        if not self.said:
            logger.warning("the model for this machine is fetched first: %d MB, once", total >> 20)
        self.said = f"{phase}: {done >> 20} of {total >> 20} MB" if done < total else ""


@dataclass(slots=True)
class HandedTask:
    """A task that runs in this process, or has run in it. `task_id` is empty before the task has begun.

    `error` is set if the task could not be run to a result. `told` counts the changes of this object (see
    `changed`). `unwanted`: true if the task is to be interrupted as soon as it begins. `interrupted`: true if the
    task was asked to end.
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
        """Return the question that waits for an answer. Return None if there is none."""
        return None if self._question is None or self._question.said.done() else self._question

    @property
    def result(self) -> FinalResult | None:
        """Return the result of the task. Return None before the task has ended."""
        return self.state.result

    @property
    def planned(self) -> int:
        """Return the number of subtasks in this round."""
        return 0 if self.state.round is None else len(self.state.round.subtasks)

    @property
    def done(self) -> int:
        """Return the number of subtasks in this round that have ended."""
        return 0 if self.state.round is None else self.state.round.ended

    @property
    def doing(self) -> str:
        """Describe the present operation. It is the download, or the tool call that is running or was the latest,
        or else a subtask."""
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
        """Return whether the task has a result or an error. Nothing more happens after that."""
        return self.result is not None or self.error is not None

    async def changed(self, told: int) -> None:
        """Wait until the number of changes is greater than `told`, or until the task has ended."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.told > told or self.ended)

    async def confirm(self, request: ConfirmationRequest) -> Said:
        """Ask the client. Implements `ports.confirm.Confirm`. Raises TimeoutError if there is no answer."""
        question = OpenQuestion(request, asyncio.get_running_loop().create_future())
        self._question = question
        await self._tell()
        try:
            async with asyncio.timeout(UNANSWERED_SECONDS):
                return await question.said
        finally:
            self._question = None

    async def hear(self, envelope: Envelope) -> None:
        """Update the state by one message of the task's stream."""
        # The listener is called first, so that the editor has the message before a waiting call continues.
        if self.listener is not None:
            await self.listener(envelope)
        self.task_id = envelope.task_id
        self.state.apply(envelope)
        self.request = self.state.request or self.request
        await self._tell()

    async def fail(self, error: ArtooError) -> None:
        """Record that the task could not be run to a result."""
        self.error = error
        await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self.told += 1
            self._changed.notify_all()
