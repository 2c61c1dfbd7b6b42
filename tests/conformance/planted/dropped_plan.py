"""A manifest whose plan nobody has published."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.remove("Plan", 0)


FAULT = StreamFault("two at once", plant)
