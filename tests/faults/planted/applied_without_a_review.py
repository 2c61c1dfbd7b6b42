"""A deletion took effect at the end of a task, and nobody was asked."""

from __future__ import annotations

from artoo.contracts.settling import ChangeClass, ClassCount
from faults import Stream, StreamFault


def plant(stream: Stream) -> None:
    counts = (ClassCount(change_class=ChangeClass.DELETION, count=1),)
    stream.change("Settled", state="applied", counts=counts)
    stream.change("FinalResult", changes=stream.payload("Settled"))


FAULT = StreamFault("two at once", plant)
