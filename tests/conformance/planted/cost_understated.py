"""The result says that it took one model call; it took more."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("FinalResult", cost__llm_calls=1)


FAULT = StreamFault("two at once", plant)
