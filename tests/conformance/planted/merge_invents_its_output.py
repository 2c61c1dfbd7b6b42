"""R4b's merge holds what no outcome holds."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("OutcomeSummary", merged_output="All 73 tests passed.")


FAULT = StreamFault("two at once", plant)
