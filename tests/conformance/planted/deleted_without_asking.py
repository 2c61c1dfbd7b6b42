"""A file is overwritten or deleted, and nobody was asked."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.remove("ConfirmationRequest")
    stream.remove("ConfirmationAnswer")


FAULT = StreamFault("a deletion that was agreed to", plant)
