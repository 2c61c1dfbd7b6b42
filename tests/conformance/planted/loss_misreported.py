"""R7 reports a loss that does not follow from its own terms."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("Decided", 0, loss__L=0.01)


FAULT = StreamFault("a second plan", plant)
