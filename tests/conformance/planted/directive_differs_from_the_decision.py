"""The directive is not what was decided."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("PlanDirective", 0, directive="change_path")


FAULT = StreamFault("a second plan", plant)
