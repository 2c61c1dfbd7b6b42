"""An outcome was lost, and the task ended as if it had come."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.remove("SubTaskOutcome", 0)


FAULT = StreamFault("two at once", plant)
