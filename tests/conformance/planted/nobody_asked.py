"""A task that no person has asked for."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.remove("UserRequest", 0)


FAULT = StreamFault("two at once", plant)
