"""R1 hands on another request than the person made."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("TaskSpec", raw_input="Delete everything below my home directory")


FAULT = StreamFault("two at once", plant)
