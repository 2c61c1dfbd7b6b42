"""The gate kept the changes pending, and the result says that they were applied."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("Settled", state="pending")
    stream.change("FinalResult", changes__state="applied")


FAULT = StreamFault("two at once", plant)
