"""A second attempt that no correction has asked for."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.repeat("ExecutionResult")
    stream.change("ExecutionResult", 1, attempt=2)


FAULT = StreamFault("two at once", plant)
