"""A person says no to what a task changed, and its result says that it took effect."""

from __future__ import annotations

from faults import Stream, StreamFault, changed


def plant(stream: Stream) -> None:
    settled = stream.payload("FinalResult").changes
    stream.change("FinalResult", changes=changed(settled, state="applied"))


FAULT = StreamFault("a deletion that was refused", plant)
