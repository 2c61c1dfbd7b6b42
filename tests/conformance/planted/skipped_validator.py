"""A subtask's verdicts were never reached; its outcome has them all the same."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.remove("CriterionJudged")


FAULT = StreamFault("two at once", plant)
