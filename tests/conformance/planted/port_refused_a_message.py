"""A port refused what a role tried to say; the bus reports it."""

from __future__ import annotations

from planting import Stream, StreamFault

from artoo.contracts.events import RouteViolation
from artoo.contracts.roles import Role


def plant(stream: Stream) -> None:
    stream.say(
        RouteViolation(offender=Role.EXECUTOR, refused_kind="Plan", reason="not its to say"), sender=Role.BUS
    )


FAULT = StreamFault("two at once", plant)
