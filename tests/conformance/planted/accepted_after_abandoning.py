"""R7 decides to abandon and delivers as accepted."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("FinalResult", directive="accept", stopped_by=None, unmet=())


FAULT = StreamFault("giving up honestly", plant)
