"""One of two subtasks failed, and the task is accepted."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("SubTaskOutcome", 1, status="failed", failure_reason="it did not work")


FAULT = StreamFault("two at once", plant)
