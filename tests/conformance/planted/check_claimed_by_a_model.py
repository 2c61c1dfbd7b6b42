"""A criterion with a check is said to be decided by a model."""

from __future__ import annotations

from planting import Stream, StreamFault, changed


def plant(stream: Stream) -> None:
    verdict = changed(stream.payload("CriterionJudged").verdict, decided_by="judgement")
    stream.change("CriterionJudged", verdict=verdict)


FAULT = StreamFault("two at once", plant)
