"""The numbers say break the symmetry, R7 says refine."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("Decided", 0, directive="refine")
    stream.change("PlanDirective", 0, directive="refine")


FAULT = StreamFault("a second plan", plant)
