"""The outcomes of two subtasks are taken for each other."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    first, second = (stream.payload("SubTaskOutcome", number) for number in (0, 1))
    stream.change("SubTaskOutcome", 0, subtask_id=second.subtask_id)
    stream.change("SubTaskOutcome", 1, subtask_id=first.subtask_id)


FAULT = StreamFault("two at once", plant)
