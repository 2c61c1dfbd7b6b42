"""A result lists a tool call that never happened."""

from __future__ import annotations

from planting import Stream, StreamFault

from artoo.contracts.execution import ToolCall


def plant(stream: Stream) -> None:
    result = stream.payload("ExecutionResult")
    invented = ToolCall(tool="shell", identity=("shell:cat",), input="cat b.txt", output="all is well")
    stream.change("ExecutionResult", tool_calls=(*result.tool_calls, invented))


FAULT = StreamFault("two at once", plant)
