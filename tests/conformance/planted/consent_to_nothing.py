"""An answer with a digest that nobody has asked about."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("ConfirmationAnswer", digest="0" * 64)


FAULT = StreamFault("a deletion that was agreed to", plant)
