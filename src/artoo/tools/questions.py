"""Where the gate's questions go: onto the stream, to a person directly, or to nobody."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from artoo.contracts.confirmation import (
    NOBODY,
    PERSON,
    ConfirmationAnswer,
    ConfirmationRequest,
    Consent,
)
from artoo.ports.bus import Port
from artoo.ports.confirm import Confirm, answer_of

logger = logging.getLogger(__name__)


class AskNobody:
    """Where nobody can be asked the answer is no."""

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """No, at once."""
        return ConfirmationAnswer(digest=request.digest, consent=Consent.NO, by=NOBODY)


@dataclass(frozen=True, slots=True)
class AskPerson:
    """Asks without a stream: for one command under the gate, and for tests."""

    confirm: Confirm

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """What `confirm` says."""
        return answer_of(request, await self.confirm(request), PERSON)


class AskOnStream:
    """Publishes each question with the gate's port of one task, and waits for the answer with its digest.

    `run` must be running for `ask` to return. Answers to what was not asked, or is answered already, change
    nothing and are logged.
    """

    def __init__(self, port: Port) -> None:
        self._port = port
        self._open: dict[str, asyncio.Future[ConfirmationAnswer]] = {}

    async def run(self) -> None:
        """Reads the gate's inbox until the port closes."""
        async for envelope in self._port:
            answer = envelope.payload
            if not isinstance(answer, ConfirmationAnswer):
                continue
            waiting = self._open.get(answer.digest)
            if waiting is None or waiting.done():
                logger.warning("an answer to no open question was ignored (digest %s)", answer.digest)
            else:
                waiting.set_result(answer)

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """The answer with this digest. One question for one act at a time: the caller sees to that."""
        waiting = asyncio.get_running_loop().create_future()
        self._open[request.digest] = waiting
        try:
            self._port.publish(request)
            return await waiting
        finally:
            del self._open[request.digest]
