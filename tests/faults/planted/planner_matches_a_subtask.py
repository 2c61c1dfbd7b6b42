"""The planner declares its own subtask matched."""

from __future__ import annotations

from artoo.contracts.roles import Role
from faults import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.put("SubTaskOutcome", sender=Role.PLANNER)


FAULT = StreamFault("two at once", plant)
