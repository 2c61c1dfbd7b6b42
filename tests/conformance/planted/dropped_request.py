"""The plan answers a reading of the request that was never made."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.remove("TaskSpec", 0)


FAULT = StreamFault("two at once", plant)
