"""A result for a subtask that was never handed out."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("ExecutionResult", subtask_id="01900000-0000-7000-8000-000000000001")


FAULT = StreamFault("two at once", plant)
