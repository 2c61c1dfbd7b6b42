"""The planner publishes the final result in R7's place."""

from __future__ import annotations

from planting import Stream, StreamFault

from artoo.contracts.roles import Role


def plant(stream: Stream) -> None:
    stream.put("FinalResult", sender=Role.PLANNER)


FAULT = StreamFault("two at once", plant)
