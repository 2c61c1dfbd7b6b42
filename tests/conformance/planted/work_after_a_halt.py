"""A subtask is handed out after R7 has halted the task."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    again = stream.get("SubTask")._replace(id="late", cause_id=stream.get("Plan").id)
    stream.envelopes.insert(stream.place("Halt") + 1, again)


FAULT = StreamFault("interrupted", plant)
