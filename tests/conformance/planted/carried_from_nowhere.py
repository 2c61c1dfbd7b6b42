"""A plan carries a subtask that never matched."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("Plan", 1, carried=("01900000-0000-7000-8000-000000000002",))
    stream.change("DispatchManifest", 1, carried=("01900000-0000-7000-8000-000000000002",))


FAULT = StreamFault("a second plan", plant)
