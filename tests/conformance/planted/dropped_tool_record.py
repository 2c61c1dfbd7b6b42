"""The record of a tool call was lost."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.remove("ToolCalled", 0)


FAULT = StreamFault("two at once", plant)
