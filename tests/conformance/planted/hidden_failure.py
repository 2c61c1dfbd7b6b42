"""A failed call is left out of the result."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("ExecutionResult", tool_calls=())


FAULT = StreamFault("a correction", plant)
