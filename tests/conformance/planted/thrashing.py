"""The symmetry is broken three times in a row, and D does not fall."""

from __future__ import annotations

from planting import Stream, StreamFault, changed


def plant(stream: Stream) -> None:
    broken = stream.get("Decided")
    directed = stream.get("PlanDirective")
    for round_ in (2, 3):
        again = stream.say(changed(broken.payload, round=round_), sender=broken.sender, after=directed)
        stream.envelopes[stream.envelopes.index(again)] = again._replace(cause_id=broken.cause_id)


FAULT = StreamFault("a second plan", plant)
