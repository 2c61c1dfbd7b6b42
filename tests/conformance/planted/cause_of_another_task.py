"""A message whose cause belongs to another task."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    other = stream.get("Plan")._replace(id="of-another-task", task_id="another-task")
    stream.envelopes.insert(0, other)
    stream.put("DispatchManifest", cause_id=other.id)


FAULT = StreamFault("two at once", plant)
