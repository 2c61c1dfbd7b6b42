"""Notify the user by bell, OSC 9, command or webhook, with the delay and the timeout of a notice."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.request import UserRequest
from artoo.contracts.solution import FinalResult
from artoo.contracts.steering import PlanAnswered, PlanProposed, QuestionAnswered, QuestionAsked
from artoo.contracts.text import shortened
from artoo.runtime.config.extensions import Notify
from artoo.runtime.extensions.commands import run_with_json

logger = logging.getLogger(__name__)

_KINDS = frozenset(
    each.__name__
    for each in (
        *(UserRequest, FinalResult, ConfirmationRequest, ConfirmationAnswer),
        *(QuestionAsked, QuestionAnswered, PlanProposed, PlanAnswered),
    )
)
_GRACE = 0.5
"""Number of seconds for which a question must be open before the user is notified, because policies answer some
questions at once."""
_SECONDS = 15.0
"""Timeout of a notification command or a webhook."""
_TEXT = 200


@dataclass(slots=True)
class Notices:
    """Follows the stream of messages and notifies the user. `redacted` removes secrets from texts."""

    settings: Notify
    home: Path
    redacted: Callable[[str], str]
    _begun: dict[str, tuple[float, UserRequest]] = field(default_factory=dict[str, tuple[float, UserRequest]])
    _open: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])

    async def run(self, messages: AsyncIterable[Envelope], group: asyncio.TaskGroup) -> None:
        """Follow the stream until it ends. The notifications are sent by tasks in `group`."""
        async for envelope in messages:
            self.hear(envelope, group)

    def hear(self, envelope: Envelope, group: asyncio.TaskGroup) -> None:
        """Handle one message. Notify the user if it is one of the configured events."""
        match envelope.payload:
            case UserRequest() as request:
                self._begun[envelope.task_id] = time.monotonic(), request
            case ConfirmationRequest(title=title):
                self._ask(envelope, title, group)
            case QuestionAsked(question=question):
                self._ask(envelope, question, group)
            case PlanProposed():
                self._ask(envelope, "a plan needs your approval", group)
            case ConfirmationAnswer() | QuestionAnswered() | PlanAnswered():
                if envelope.cause_id in self._open:
                    self._open.pop(envelope.cause_id).cancel()
            case FinalResult() as result:
                started, _ = self._begun.get(envelope.task_id, (0.0, None))
                if time.monotonic() - started >= self.settings.after_seconds:
                    text = result.output or result.summary
                    said = self._said("ended", envelope.task_id, text, result.directive.value)
                    group.create_task(self._tell(said))
                self._begun.pop(envelope.task_id, None)
            case _:
                return

    def _ask(self, envelope: Envelope, text: str, group: asyncio.TaskGroup) -> None:
        async def when_open() -> None:
            await asyncio.sleep(_GRACE)
            self._open.pop(envelope.id, None)
            await self._tell(self._said("needs_you", envelope.task_id, text))

        self._open[envelope.id] = group.create_task(when_open())

    def leave(self) -> None:
        """Cancel the notifications of questions that are still open, because these questions can no longer be
        answered."""
        for each in self._open.values():
            each.cancel()

    def _said(self, event: str, task_id: str, text: str, directive: str = "") -> dict[str, str]:
        """Return the data of one event for notifications, without secrets."""
        _, request = self._begun.get(task_id, (0.0, None))
        asked = "" if request is None else request.text
        return {
            "event": event,
            "task_id": task_id,
            "project": "" if request is None else request.project,
            "request": self.redacted(shortened(asked, _TEXT)),
            "text": self.redacted(shortened(text, _TEXT)),
            "directive": directive,
        }

    async def _tell(self, said: dict[str, str]) -> None:
        """Notify the user of one event in every configured way. If one way fails, this is logged."""
        settings, event = self.settings, said["event"]
        if event not in settings.events:
            return
        self._on_terminal("artoo needs you" if event == "needs_you" else "artoo has ended a task", said["text"])
        if settings.command is not None:
            command = settings.command
            ran = await asyncio.to_thread(run_with_json, command, said, self.home, _SECONDS)
            if ran.code != 0:
                logger.warning("the notification command failed (%s): %s", ran.code, ran.message)
        if settings.webhook is not None:
            await _post(settings.webhook, said)

    def _on_terminal(self, head: str, text: str) -> None:
        stream = sys.stderr
        if not stream.isatty():
            return
        plain = "".join(each for each in f"{head}: {text}" if each.isprintable())
        marks = ("\a" if self.settings.bell else "") + (f"\x1b]9;{plain}\a" if self.settings.osc9 else "")
        with suppress(OSError):
            stream.write(marks)
            stream.flush()


async def _post(address: str, said: dict[str, str]) -> None:
    """Send JSON to a webhook. A failure is logged without the address, because the address may contain a secret."""
    import aiohttp

    try:
        limit = aiohttp.ClientTimeout(total=_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=limit, trust_env=True) as session,
            session.post(address, json=said, allow_redirects=False) as response,
        ):
            if response.status >= 400:
                logger.warning("the notification webhook answered with status %d", response.status)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        logger.warning("the notification webhook cannot be reached: %s", type(error).__name__)


@asynccontextmanager
async def noticed(
    bus: InProcessBus, settings: Notify, home: Path, redacted: Callable[[str], str]
) -> AsyncGenerator[None]:
    """Notify the user of events on the stream while the block runs. A notification that was begun is completed even
    if the block ends."""
    notices = Notices(settings, home, redacted)
    queue = bus.subscribe("notices", kinds=_KINDS)
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(notices.run(queue, group))
        try:
            yield
        finally:
            queue.close()
            await asyncio.wait((listening,))
            notices.leave()
