"""Ask one question in several windows, with the interval of polling, and accept the first answer.

One window asks the user, and the prompt queue offers the same question to the other windows.

The first answer counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from artoo.contracts.confirmation import Choice, ConfirmationRequest, Consent, Words
from artoo.contracts.steering import UserMessage
from artoo.ports.confirm import Confirm, Said, consent_of
from artoo.runtime.approvals.prompt_store import Given, TaskDesk

LOOK_SECONDS = 0.2
"""Seconds between two reads of the prompt queue while a question is pending."""
STOP_SECONDS = 0.5
"""Seconds between two checks of a running task for a stop request. One check is a single `stat` call of about 3
µs."""

HERE = "terminal"


@runtime_checkable
class Hears(Protocol):
    """A `confirm` callback that is notified if the answer came from another window."""

    def answered_elsewhere(self, request: ConfirmationRequest, given: Given) -> None:
        """Show, in the window that asked, that the question was answered elsewhere."""
        ...


class AskedEverywhere:
    """Asks here with `confirm`, and also puts the question into the prompt queue for other windows. Implements
    ports.confirm.Confirm.

    `here` is the name of this window, which the other windows show. `was_elsewhere`: true if the last answer came
    from another window.
    """

    def __init__(self, confirm: Confirm, desk: TaskDesk, here: str = HERE) -> None:
        self._confirm = confirm
        self._desk = desk
        self._here = here
        self.was_elsewhere = False

    async def __call__(self, request: ConfirmationRequest) -> Consent | Choice | Words:
        """Return the first answer, from whichever window."""
        # If the task was asked to stop, the answer is no.
        self.was_elsewhere = False
        with self._desk.laid(request) as slip:
            here = asyncio.ensure_future(self._confirm(request))
            try:
                while not here.done():
                    await asyncio.wait((here,), timeout=LOOK_SECONDS)
                    given = slip.given()
                    if given is not None and not here.done():
                        return await self._elsewhere(here, request, given)
                    if self._desk.stop_wanted():
                        return Consent.NO
                given = slip.answer(consent_of(here.result()), self._here)
                return given.said if given.first else await self._elsewhere(here, request, given)
            finally:
                here.cancel()
                await asyncio.wait((here,))

    async def _elsewhere(
        self, here: asyncio.Future[Said], request: ConfirmationRequest, given: Given
    ) -> Consent | Choice | Words:
        self.was_elsewhere = True
        here.cancel()
        await asyncio.wait((here,))
        if isinstance(self._confirm, Hears):
            self._confirm.answered_elsewhere(request, given)
        return given.said


@contextmanager
def stoppable(desk: TaskDesk, stop: Callable[[], None], send: Callable[[UserMessage], None]) -> Generator[None]:
    """Watch the prompt queue while the block runs, and pass each queued message to `send`. If a stop is requested,
    call `stop` once."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        nonlocal timer
        for message in desk.take_messages():
            send(message)
        if desk.stop_wanted():
            stop()
        else:
            timer = loop.call_later(STOP_SECONDS, look)

    timer = loop.call_later(STOP_SECONDS, look)
    try:
        yield
    finally:
        timer.cancel()
