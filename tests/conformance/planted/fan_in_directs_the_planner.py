"""R4b talks to R2 directly."""

from __future__ import annotations

from planting import Stream, StreamFault

from artoo.contracts.roles import Role


def plant(stream: Stream) -> None:
    stream.put("PlanDirective", sender=Role.META_VALIDATOR)


FAULT = StreamFault("a second plan", plant)
