"""A directive for a round that is not the next one."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("PlanDirective", round=7)


FAULT = StreamFault("a second plan", plant)
