"""A result was lost, and its outcome came all the same."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.remove("ExecutionResult", 0)


FAULT = StreamFault("two at once", plant)
