"""A verdict on a criterion that the subtask does not have."""

from __future__ import annotations

from planting import Stream, StreamFault, changed


def plant(stream: Stream) -> None:
    (verdict,) = stream.payload("SubTaskOutcome").criteria_verdicts
    stream.change("SubTaskOutcome", criteria_verdicts=(changed(verdict, criterion="the weather is fine"),))


FAULT = StreamFault("two at once", plant)
