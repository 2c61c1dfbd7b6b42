"""Subtasks ran that no manifest names."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.remove("DispatchManifest", 0)


FAULT = StreamFault("two at once", plant)
