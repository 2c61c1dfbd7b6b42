"""The planner writes to shared memory, which only R7 and the Dreamer may."""

from __future__ import annotations

from planting import Stream, StreamFault

from artoo.contracts.roles import Role


def plant(stream: Stream) -> None:
    stream.put("MemoryWritten", sender=Role.PLANNER)


FAULT = StreamFault("two at once", plant)
