"""An executor publishes the verdict on its own work."""

from __future__ import annotations

from planting import Stream, StreamFault

from artoo.contracts.roles import Role


def plant(stream: Stream) -> None:
    stream.put("CriterionJudged", sender=Role.EXECUTOR)


FAULT = StreamFault("two at once", plant)
