"""R7 reports a gradient that does not follow from the losses."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("Decided", 0, grad_l=-0.7)


FAULT = StreamFault("a second plan", plant)
