"""The model of who only confirms: it is not asked beyond the time that delivering what is there needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from artoo.contracts.errors import BudgetExhausted
from artoo.ports.model import Answer, Conversation, Model, OnText, Question, Spoken

T = TypeVar("T", bound=BaseModel)

TimeLeft = Callable[[], float]
"""Seconds for which somebody may still ask; below zero when that is over."""


@dataclass(frozen=True, slots=True)
class ModelInTime:
    """Implements Model. A question that would be answered too late ends as one for which no budget is left.

    What a person is asked meanwhile stops the task's time, but not that of a question which is out: it may be given
    up a little early, and then says so.
    """

    model: Model
    time_left: TimeLeft

    async def ask(self, question: Question[T]) -> Answer[T]:
        """See Model."""
        async with self._in_time():
            return await self.model.ask(question)

    async def converse(self, conversation: Conversation, on_text: OnText | None = None) -> Spoken:
        """See Model."""
        async with self._in_time():
            return await self.model.converse(conversation, on_text)

    @asynccontextmanager
    async def _in_time(self) -> AsyncGenerator[None]:
        left = self.time_left()
        if left <= 0:
            raise _too_late()
        limit = asyncio.timeout(left)
        try:
            async with limit:
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise _too_late() from error


def _too_late() -> BudgetExhausted:
    return BudgetExhausted(
        "the task's budget of time is spent but for what delivering needs; raise it with `seconds` of its limits",
        budget="time",
    )


def in_time(model: Model, time_left: TimeLeft | None) -> Model:
    """`model`, bounded where there is a bound."""
    return model if time_left is None else ModelInTime(model, time_left)
