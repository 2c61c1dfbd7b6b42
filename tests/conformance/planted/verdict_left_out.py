"""An outcome without the verdict on one of its criteria."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("SubTaskOutcome", criteria_verdicts=())


FAULT = StreamFault("two at once", plant)
