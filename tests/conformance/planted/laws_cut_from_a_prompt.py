"""A prompt without the Four Laws."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    system = stream.payload("ModelCalled").system
    stream.change("ModelCalled", system=system[system.index("\n\n") + 2 :].partition("\n\n")[2])


FAULT = StreamFault("two at once", plant)
