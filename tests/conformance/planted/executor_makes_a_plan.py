"""An executor publishes a plan."""

from __future__ import annotations

from planting import Stream, StreamFault

from artoo.contracts.roles import Role


def plant(stream: Stream) -> None:
    stream.put("Plan", sender=Role.EXECUTOR)


FAULT = StreamFault("two at once", plant)
