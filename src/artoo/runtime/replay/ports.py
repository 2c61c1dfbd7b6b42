"""A role's place in a replay: it hears the log, and what it says is held against the log until the task is live."""

from __future__ import annotations

from collections.abc import AsyncIterator

from artoo.contracts.base import Contract
from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import StreamClosed
from artoo.contracts.roles import Role
from artoo.contracts.routes import may_publish
from artoo.contracts.settling import Ending
from artoo.contracts.steering import PlanProposed, QuestionAsked, UserMessage
from artoo.ports.bus import Port
from artoo.runtime.replay.conductor import PLAYED, Conductor

_SETTLED = (ConfirmationRequest, ConfirmationAnswer, Ending, QuestionAsked, PlanProposed)
"""Of the log, the user and the gate do not hear these: they were asked and answered then. An Ending that the gate
had not answered does not stand (see `standing`), so R7 says it again when the task is live."""


class ConductedPort:
    """Wraps a port of the bus. Implements ports.bus.Port."""

    def __init__(self, inner: Port, subtask_id: str | None, conductor: Conductor) -> None:
        self._inner = inner
        self._subtask_id = subtask_id
        self._conductor = conductor

    @property
    def role(self) -> Role:
        """See Port."""
        return self._inner.role

    @property
    def task_id(self) -> str:
        """See Port."""
        return self._inner.task_id

    def publish(
        self, payload: Contract, *, cause: Envelope | None = None, subtask_id: str | None = None
    ) -> Envelope:
        """See Port. Before the task is live, it returns the log's message, or one that is not said for good yet."""
        conductor, kind = self._conductor, type(payload).__name__
        passing = conductor.live or (conductor.opening and self.role not in PLAYED)
        if passing or not may_publish(self.role, kind):
            return self._inner.publish(payload, cause=cause, subtask_id=subtask_id)
        place = self._subtask_id if subtask_id is None else subtask_id
        cause_id = None if cause is None else cause.id
        said = Envelope("", self.role, self.task_id, conductor.clock.now(), payload, place, cause_id)
        return conductor.say(said, lambda: self._inner.publish(payload, cause=cause, subtask_id=subtask_id))

    async def receive(self) -> Envelope:
        """See Port."""
        while True:
            envelope = await self._inner.receive()
            if not (self._was_settled(envelope) or self._was_held(envelope)):
                return envelope

    async def __aiter__(self) -> AsyncIterator[Envelope]:
        while True:
            try:
                envelope = await self.receive()
            except StreamClosed:
                return
            yield envelope

    def close(self) -> None:
        """See Port."""
        self._inner.close()

    def _was_held(self, envelope: Envelope) -> bool:
        """A hold of the log interrupted a turn then; nothing is under way now that it could interrupt."""
        payload = envelope.payload
        return isinstance(payload, UserMessage) and payload.hold and self._conductor.is_logged(envelope)

    def _was_settled(self, envelope: Envelope) -> bool:
        settled = self.role in (Role.USER, Role.GATE) and isinstance(envelope.payload, _SETTLED)
        return settled and self._conductor.is_logged(envelope)
