"""A second final result."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.repeat("FinalResult")


FAULT = StreamFault("two at once", plant)
