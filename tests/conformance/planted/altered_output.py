"""The output in a result is not what the tool printed."""

from __future__ import annotations

from planting import Stream, StreamFault, changed


def plant(stream: Stream) -> None:
    (call,) = stream.payload("ExecutionResult").tool_calls
    stream.change("ExecutionResult", tool_calls=(changed(call, output="9999"),))


FAULT = StreamFault("two at once", plant)
