"""The same round is directed again and again."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.repeat("Decided", 0, times=6)


FAULT = StreamFault("a second plan", plant)
