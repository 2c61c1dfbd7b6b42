"""A deletion took effect at the end of a task, and nobody was asked."""

from __future__ import annotations

from planting import Stream, StreamFault

from artoo.contracts.settling import ChangeClass, ClassCount


def plant(stream: Stream) -> None:
    counts = (ClassCount(change_class=ChangeClass.DELETION, count=1),)
    stream.change("Settled", state="applied", counts=counts)
    stream.change("FinalResult", changes=stream.payload("Settled"))


FAULT = StreamFault("two at once", plant)
