"""A manifest whose plan nobody has published."""

from __future__ import annotations

from faults import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.remove("Plan", 0)


FAULT = StreamFault("two at once", plant)
