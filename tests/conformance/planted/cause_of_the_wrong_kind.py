"""An outcome that answers the request instead of a result."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.put("SubTaskOutcome", cause_id=stream.get("UserRequest").id)


FAULT = StreamFault("two at once", plant)
