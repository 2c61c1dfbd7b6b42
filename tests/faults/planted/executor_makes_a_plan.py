"""An executor publishes a plan."""

from __future__ import annotations

from artoo.contracts.roles import Role
from faults import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.put("Plan", sender=Role.EXECUTOR)


FAULT = StreamFault("two at once", plant)
