"""A control message that answers nothing."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.put("ExecutionResult", cause_id=None)


FAULT = StreamFault("two at once", plant)
