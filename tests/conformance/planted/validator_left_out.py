"""Result, validator and outcome of one subtask are left out; the summary counts it in."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    subtask = stream.get("SubTaskOutcome").subtask_id
    stream.envelopes = [
        one for one in stream.envelopes if one.subtask_id != subtask or one.kind in ("SubTask", "ModelCalled")
    ]


FAULT = StreamFault("two at once", plant)
