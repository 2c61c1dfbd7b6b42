"""Something was withheld, and the summary does not say so."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    summary = stream.payload("FinalResult").summary
    stream.change("FinalResult", withheld=(), summary=summary.replace("[LAW1]", "").strip())


FAULT = StreamFault("a host that was refused", plant)
