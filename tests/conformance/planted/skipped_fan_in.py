"""The fan-in gate was skipped: an accepting result without R4b's summary."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.remove("OutcomeSummary", 0)


FAULT = StreamFault("two at once", plant)
