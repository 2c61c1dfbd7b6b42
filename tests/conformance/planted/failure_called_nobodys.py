"""A criterion that the subtask was to meet fails its check, and is called nobody's failure."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("CriterionJudged", verdict__blameless=True)


FAULT = StreamFault("two corrections", plant)
