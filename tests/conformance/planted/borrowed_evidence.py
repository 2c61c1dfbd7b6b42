"""A result carries the tool call of the other subtask as its evidence."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("ExecutionResult", tool_calls=stream.payload("ExecutionResult", 1).tool_calls)


FAULT = StreamFault("two at once", plant)
