"""The final result holds what the merge does not."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("FinalResult", output="All 73 tests passed.")


FAULT = StreamFault("two at once", plant)
