"""The envelope of every message, with id, sender, task, cause, time and payload.

Reference: SPEC section 1.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from artoo.contracts.base import Contract
from artoo.contracts.roles import Role


class Envelope(NamedTuple):
    """One message of the stream.

    `id` is a UUIDv7, so ids sort by time. `cause_id` names the message that this one answers; it is None only for
    messages that a user or a clock starts. `at` is UTC. The envelope is a named tuple instead of a Pydantic
    model, because the bus builds it from valid parts up to a hundred thousand times a second, and a tuple takes a
    third of the time of a frozen dataclass.
    """

    id: str
    sender: Role
    task_id: str
    at: datetime
    payload: Contract
    subtask_id: str | None = None
    cause_id: str | None = None

    @property
    def kind(self) -> str:
        """Return the payload's type name, as in the table of routes."""
        return type(self.payload).__name__
