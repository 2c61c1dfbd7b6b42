"""A message that was published before the one that it answers."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    place = stream.place("OutcomeSummary")
    stream.envelopes.insert(stream.place("Plan"), stream.envelopes.pop(place))


FAULT = StreamFault("two at once", plant)
