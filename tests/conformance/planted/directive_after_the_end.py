"""A directive after the task has ended."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    directive = stream.get("PlanDirective")
    stream.envelopes.append(directive._replace(id="late"))


FAULT = StreamFault("a second plan", plant)
