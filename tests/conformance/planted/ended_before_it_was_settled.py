"""A result came without the gate having settled anything."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.remove("Settled")


FAULT = StreamFault("two at once", plant)
