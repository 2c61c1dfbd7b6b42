"""Two messages under one id."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.put("SubTaskOutcome", 1, id=stream.get("SubTaskOutcome").id)


FAULT = StreamFault("two at once", plant)
