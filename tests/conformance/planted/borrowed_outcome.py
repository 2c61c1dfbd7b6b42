"""An outcome carries the tool calls of the other subtask."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("SubTaskOutcome", tool_calls=stream.payload("SubTaskOutcome", 1).tool_calls)


FAULT = StreamFault("two at once", plant)
