"""R1 (perceiver), which restates a request with references to the last turns resolved.

It does nothing else.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ModelAnswerInvalid
from artoo.contracts.request import TaskSpec, UserRequest
from artoo.contracts.tags import slug
from artoo.loops.asking import Asker, with_images
from artoo.loops.prepared import turn_told
from artoo.loops.role import listen
from artoo.ports.bus import Port
from artoo.prompts.segments import Segment
from artoo.words.language import language_of

# The number of earlier turns that the perceiver sees (v0.8, input contract of R1).
SESSION_TURNS = 5

_TURN_CHARACTERS = 400


class TaskSpecAnswer(Contract):
    """The model's answer under the contract TaskSpec. Code adds the other fields of TaskSpec."""

    intent: str = Field(min_length=1)
    corrects: bool = False


@dataclass(frozen=True, slots=True)
class Perceiver:
    """Asks a model only if there is an earlier conversation. Otherwise the user's own words are the best
    restatement."""

    port: Port
    asker: Asker
    always_ask: bool = False

    async def run(self) -> None:
        """Answer each UserRequest with a TaskSpec until the port closes."""
        await listen(self.port, self._handle)

    async def _handle(self, envelope: Envelope) -> None:
        if isinstance(envelope.payload, UserRequest):
            self.port.publish(await self._perceive(envelope, envelope.payload), cause=envelope)

    async def _perceive(self, envelope: Envelope, request: UserRequest) -> TaskSpec:
        answer: TaskSpecAnswer | None = None
        if request.history or self.always_ask:
            # Without a usable answer, the user's own words serve as the restatement, because they cannot distort
            # the request.
            with suppress(ModelAnswerInvalid):
                answer = await self._ask(envelope, request)
        intent = request.text if answer is None else answer.intent
        return TaskSpec(
            task_id=slug(intent),
            intent=intent,
            raw_input=request.text,
            language=language_of(request.text),
            corrects=bool(request.history) and answer is not None and answer.corrects,
            checks=request.checks,
            waiting=tuple(turn for turn in request.history[-SESSION_TURNS:] if turn.waits),
            last=request.history[-1] if request.history else None,
            images=request.images,
            east=request.east,
        )

    async def _ask(self, envelope: Envelope, request: UserRequest) -> TaskSpecAnswer:
        session = "\n".join(turn_told(turn, _TURN_CHARACTERS) for turn in request.history[-SESSION_TURNS:])
        segments = {Segment.SESSION: session, Segment.TASK: request.text}
        segments = with_images(segments, request.images, shown=False)
        return await self.asker.ask("TaskSpec", TaskSpecAnswer, segments, cause=envelope, max_tokens=600)
