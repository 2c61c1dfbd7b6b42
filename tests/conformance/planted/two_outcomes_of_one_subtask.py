"""A subtask leaves the fast loop twice."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.repeat("SubTaskOutcome")


FAULT = StreamFault("two at once", plant)
