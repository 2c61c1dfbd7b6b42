"""An attempt that was cut off by a time limit is matched."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("ExecutionResult", status="failed", infrastructure="timeout: the attempt took more than 240 s")


FAULT = StreamFault("two at once", plant)
