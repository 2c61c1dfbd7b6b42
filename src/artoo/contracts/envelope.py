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

    `id` is a UUIDv7, so ids sort by time. `cause_id` is the id of the message that this one answers. It is None
    only for a message that a user or a clock causes. `at` is a time in UTC. The envelope is a named tuple and no
    Pydantic model, because the bus builds it from valid parts up to a hundred thousand times a second. Building a
    tuple takes a third of the time of a frozen dataclass.
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
        """Return the name of the payload's type, as the table of routes has it."""
        return type(self.payload).__name__
