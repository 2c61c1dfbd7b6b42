"""A recorded message is said once more, as it was."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.envelopes.insert(stream.place("FinalResult"), stream.get("SubTaskOutcome"))


FAULT = StreamFault("two at once", plant)
