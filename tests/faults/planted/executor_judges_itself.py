"""An executor publishes the verdict on its own work."""

from __future__ import annotations

from artoo.contracts.roles import Role
from faults import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.put("CriterionJudged", sender=Role.EXECUTOR)


FAULT = StreamFault("two at once", plant)
