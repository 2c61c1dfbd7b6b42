"""An outcome is matched although one of its verdicts is a failure."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("SubTaskOutcome", status="matched", failure_reason=None)


FAULT = StreamFault("giving up honestly", plant)
