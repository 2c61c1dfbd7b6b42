"""More corrections than an executor may get."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.repeat("CorrectionSignal", -1, times=3)


FAULT = StreamFault("two corrections", plant)
