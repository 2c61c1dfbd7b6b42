"""R7 counts fewer failures than there are."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("Decided", 0, loss__D=0.0)
    stream.change("FinalResult", loss__D=0.0)


FAULT = StreamFault("giving up honestly", plant)
