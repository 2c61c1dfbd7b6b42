"""R7 ended the task without a decision of the control law on record."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.remove("Decided", 0)


FAULT = StreamFault("two at once", plant)
