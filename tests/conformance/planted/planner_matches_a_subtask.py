"""The planner declares its own subtask matched."""

from __future__ import annotations

from planting import Stream, StreamFault

from artoo.contracts.roles import Role


def plant(stream: Stream) -> None:
    stream.put("SubTaskOutcome", sender=Role.PLANNER)


FAULT = StreamFault("two at once", plant)
