"""A subtask was never handed out, and has a result."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.remove("SubTask", 0)


FAULT = StreamFault("two at once", plant)
