"""One tool is called with one input twelve times."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.repeat("ToolCalled", 0, times=12)


FAULT = StreamFault("two at once", plant)
