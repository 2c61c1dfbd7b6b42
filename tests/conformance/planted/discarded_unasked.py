"""What a task had changed was thrown away, and nobody had said so."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("Settled", state="discarded")
    stream.change("FinalResult", changes=stream.payload("Settled"))


FAULT = StreamFault("two at once", plant)
