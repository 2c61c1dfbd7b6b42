"""A matched outcome whose output the executor never gave."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("SubTaskOutcome", output="12345 lines")


FAULT = StreamFault("two at once", plant)
