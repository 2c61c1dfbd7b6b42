"""Define the envelope of every message on the stream (SPEC section 1)."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from artoo.contracts.base import Contract
from artoo.contracts.roles import Role


class Envelope(NamedTuple):
    """One message of the stream.

    `id` is a UUIDv7, so ids sort by time. `cause_id` names the message that this one answers; only what a
    person or a clock starts has none. `at` is UTC. A named tuple and not a Pydantic model: it is built by the
    bus from parts that are valid already, a hundred thousand times in a busy second, and of all immutable
    things a tuple is the cheapest to build (a third of a frozen dataclass).
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
