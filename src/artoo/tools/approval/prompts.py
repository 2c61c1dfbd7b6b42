"""Publish the gate's questions on the stream, and refuse if no one can answer.

On the same stream it receives the message that the task ends.
"""

from __future__ import annotations

import asyncio
import logging

from artoo.contracts.confirmation import NOBODY, ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.envelope import Envelope
from artoo.contracts.settling import Ending, Settled
from artoo.ports.bus import Port
from artoo.ports.confirm import Questions
from artoo.ports.settling import NothingToSettle, Settling

logger = logging.getLogger(__name__)


class AskNobody:
    """The questions of a task in which no one can answer. Every question is refused."""

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """Refuse at once."""
        return _nobodys_no(request)


class AskOnStream:
    """The gate's role in one task. It publishes questions, receives the answers, and settles the workspace when R7
    (solver) publishes Ending.

    `run` must be running for `ask` to return. An answer to a question that was never asked is ignored, and a
    warning is logged. An answer to a question that was closed is ignored without a warning, because an interrupt
    may close a question while a person is answering it. If a second Ending no longer permits questions, the open
    question is refused.
    """

    def __init__(self, port: Port, settling: Settling | None = None) -> None:
        self._port = port
        self._settling = settling or NothingToSettle()
        self._open: dict[str, tuple[ConfirmationRequest, asyncio.Future[ConfirmationAnswer]]] = {}
        self._asked: set[str] = set()
        self._ended = False

    async def run(self) -> None:
        """Handle the messages in the gate's inbox until the port closes."""
        async with asyncio.TaskGroup() as group:
            async for envelope in self._port:
                match envelope.payload:
                    case ConfirmationAnswer() as answer:
                        self._hear(answer)
                    case Ending() as ending if self._ended:
                        if not ending.may_ask:
                            self._hurry()
                    case Ending() as ending:
                        self._ended = True
                        group.create_task(self._settle(ending, envelope))
                    case _:
                        continue

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """Publish a question and return the answer to it, matched by digest. The caller asks one question at a
        time."""
        waiting = asyncio.get_running_loop().create_future()
        self._open[request.digest] = request, waiting
        self._asked.add(request.digest)
        try:
            self._port.publish(request)
            return await waiting
        finally:
            del self._open[request.digest]

    def _hear(self, answer: ConfirmationAnswer) -> None:
        _, waiting = self._open.get(answer.digest, (None, None))
        if waiting is None or waiting.done():
            level = logging.DEBUG if answer.digest in self._asked else logging.WARNING
            logger.log(level, "an answer to no open question was ignored (digest %s)", answer.digest)
        else:
            waiting.set_result(answer)

    def _hurry(self) -> None:
        for request, waiting in self._open.values():
            if not waiting.done():
                waiting.set_result(_nobodys_no(request))

    async def _settle(self, ending: Ending, envelope: Envelope) -> None:
        questions: Questions | None = self if ending.may_ask else None
        try:
            settled = await self._settling.settle(ending, questions)
        except Exception as error:
            logger.exception("task %s could not be settled", ending.task_id)
            settled = Settled(state="pending", reason=f"it could not be settled: {error}")
        self._port.publish(settled, cause=envelope)


def _nobodys_no(request: ConfirmationRequest) -> ConfirmationAnswer:
    return ConfirmationAnswer(digest=request.digest, consent=Consent.NO, by=NOBODY)
