"""The queue of user messages, directives and answers for a working executor, with its limit.

port ──► Inbox ──► drained once between two turns │ a hold cancels the running model call
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from artoo.contracts.conversation import ModelTurn
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import InboxOverflow
from artoo.contracts.steering import CourseDirective, Heard, QuestionAnswered, UserMessage
from artoo.ports.waiting import waiting_for_a_person

MOST_WAITING = 256


@dataclass(slots=True, eq=False)
class Inbox:
    """Keeps messages until the executor reads them, at most `MOST_WAITING` between two turns.

    `messages`: ids of the user's messages that the executor has read, including those that it read before the
    process was restarted.
    """

    messages: list[str] = field(default_factory=list[str])
    _waiting: deque[Heard] = field(default_factory=deque[Heard])
    _heard: set[str] = field(default_factory=set[str])
    _answers: dict[str, str] = field(default_factory=dict[str, str])
    _held: bool = False
    _interrupted: bool = False
    _under_way: asyncio.Future[ModelTurn] | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, envelope: Envelope) -> None:
        """Queue a message for the executor. An empty message of the user only ends a hold, that is, an interruption
        by the user.

        Raises InboxOverflow if the queue is full, because no message may be lost.
        """
        if len(self._waiting) >= MOST_WAITING:
            raise InboxOverflow(
                f"{MOST_WAITING} messages wait for one turn of the executor; send fewer, or one text"
            )
        match envelope.payload:
            case UserMessage() as message:
                self._held = message.hold
                if message.text:
                    self._waiting.append(Heard(what="message", text=message.text, id=envelope.id))
            case CourseDirective() as course:
                what = "end" if course.ends_attempt else "directive"
                self._waiting.append(Heard(what=what, text=course.text, id=envelope.id))
            case QuestionAnswered(answer=answer):
                self._answers[envelope.cause_id or ""] = answer
            case _:
                return
        self._changed.set()
        self._interrupt()

    @property
    def interrupted(self) -> bool:
        """Return whether the user interrupted the last turn."""
        return self._interrupted

    @contextmanager
    def interrupting(self, turn: asyncio.Future[ModelTurn]) -> Generator[None]:
        """Cancel this turn if the user interrupts it."""
        self._under_way, self._interrupted = turn, False
        self._interrupt()
        try:
            yield
        finally:
            self._under_way = None

    def note(self, heard: Heard) -> None:
        """Record that a message was read, so that it is not read again when a task is resumed from its log."""
        self._heard.add(heard.id)
        if heard.what == "message":
            self.messages.append(heard.id)

    def drain(self) -> tuple[Heard, ...]:
        """Return the messages that arrived since the last call, oldest first."""
        found = tuple(each for each in self._waiting if each.id not in self._heard)
        self._waiting.clear()
        return found

    def take_messages(self) -> tuple[Heard, ...]:
        """Return only the messages of the user that arrived since the last call of `drain`."""
        found = tuple(each for each in self._waiting if each.what == "message" and each.id not in self._heard)
        self._waiting = deque(each for each in self._waiting if each.what != "message")
        return found

    async def until_released(self) -> None:
        """Wait until the user ends the hold. Time limits are paused during the wait."""
        if self._held:
            with waiting_for_a_person():
                await self._until(lambda: not self._held)

    async def answer_to(self, question: Envelope) -> str:
        """Wait for the user's answer; return "" if none came in time. Time limits are paused during the wait."""
        with waiting_for_a_person():
            await self._until(lambda: question.id in self._answers)
        return self._answers.pop(question.id)

    def _interrupt(self) -> None:
        if self._held and self._under_way is not None:
            self._interrupted |= self._under_way.cancel()

    async def _until(self, true: Callable[[], bool]) -> None:
        while not true():
            self._changed.clear()
            await self._changed.wait()
