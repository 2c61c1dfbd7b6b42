"""A message that claims to be an hour older than those before it."""

from __future__ import annotations

from datetime import timedelta

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.put("OutcomeSummary", at=stream.get("OutcomeSummary").at - timedelta(hours=1))


FAULT = StreamFault("two at once", plant)
