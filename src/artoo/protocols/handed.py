"""A task that another program has asked for: what is known of it now, and what it waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ArtooError
from artoo.contracts.execution import SubTaskOutcome, ToolStarted
from artoo.contracts.plan import DispatchManifest
from artoo.contracts.request import UserRequest
from artoo.contracts.solution import FinalResult
from artoo.ports.confirm import Said

UNANSWERED_SECONDS = 600.0
"""How long a question stands while nobody at the other end answers it; then the answer is no."""

LONGEST_DOING = 2_000
"""Characters of what is under way. More than is shown, so that no secret is cut in two before it is taken out."""

Listener = Callable[[Envelope], Awaitable[None]]
"""Hears every message of a task in order, before the task is known to have come so far; the task's stream waits for
it, the task itself does not."""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question of the gate that nobody has answered yet."""

    request: ConfirmationRequest
    said: asyncio.Future[Said]

    def answer(self, said: Said) -> None:
        """Only the first answer counts."""
        if not self.said.done():
            self.said.set_result(said)

    def unanswered(self, why: str) -> None:
        """Nobody is there to answer: it is no, and nobody has said it."""
        if not self.said.done():
            self.said.set_exception(TimeoutError(why))


@dataclass(slots=True)
class HandedTask:
    """One task that runs in this process, or has run. `task_id` is empty until it has begun.

    `done` of `planned` subtasks of this round have ended; `doing` is what is under way, in words. `error` is why it
    could not run to a result. `told` counts what has happened: see `changed`. `unwanted`: it is to end as soon as
    it has begun; `interrupted`: it was asked to end.
    """

    task_id: str = ""
    request: str = ""
    planned: int = 0
    done: int = 0
    doing: str = ""
    result: FinalResult | None = None
    error: ArtooError | None = None
    told: int = 0
    unwanted: bool = False
    interrupted: bool = False
    listener: Listener | None = None
    _question: OpenQuestion | None = None
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def question(self) -> OpenQuestion | None:
        """What it waits for an answer to."""
        return None if self._question is None or self._question.said.done() else self._question

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.result is not None or self.error is not None

    async def changed(self, told: int) -> None:
        """Returns when more than `told` things have happened, or it has ended."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.told > told or self.ended)

    async def confirm(self, request: ConfirmationRequest) -> Said:
        """Asks whoever attends to the task; implements `ports.confirm.Confirm`. Raises TimeoutError."""
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
        if self.listener is not None:
            await self.listener(envelope)
        self._fold(envelope)
        await self._tell()

    async def fail(self, error: ArtooError) -> None:
        """It could not be run to a result."""
        self.error = error
        await self._tell()

    def _fold(self, envelope: Envelope) -> None:
        self.task_id = envelope.task_id
        match envelope.payload:
            case UserRequest(text=text):
                self.request = text
            case DispatchManifest(subtasks=subtasks):
                self.planned, self.done = len(subtasks), 0
                self.doing = subtasks[0].intent if subtasks else ""
            case SubTaskOutcome():
                self.done += 1
            case ToolStarted(tool=tool, input=given):
                self.doing = f"{tool}: {given}"[:LONGEST_DOING]
            case FinalResult() as result:
                self.result = result
            case _:
                return

    async def _tell(self) -> None:
        async with self._changed:
            self.told += 1
            self._changed.notify_all()
