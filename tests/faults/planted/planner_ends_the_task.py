"""The planner publishes the final result in R7's place."""

from __future__ import annotations

from artoo.contracts.roles import Role
from faults import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.put("FinalResult", sender=Role.PLANNER)


FAULT = StreamFault("two at once", plant)
