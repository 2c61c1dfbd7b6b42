"""The planner writes to shared memory, which only R7 and the Dreamer may."""

from __future__ import annotations

from artoo.contracts.roles import Role
from faults import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.put("MemoryWritten", sender=Role.PLANNER)


FAULT = StreamFault("two at once", plant)
