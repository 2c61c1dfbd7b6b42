"""Model calls go on far beyond the budget of the task."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.repeat("ModelCalled", 0, times=4)


FAULT = StreamFault("calls used up", plant)
