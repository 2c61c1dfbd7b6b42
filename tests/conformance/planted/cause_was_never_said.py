"""A result answers a message that was never on the bus: a bypass."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.put("ExecutionResult", cause_id="01900000-0000-7000-8000-000000000000")


FAULT = StreamFault("two at once", plant)
