"""The second plan hands out subtasks without the prohibitions of the directive."""

from __future__ import annotations

from artoo.contracts.plan import MustNot
from faults import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("SubTask", 1, must_not=MustNot())
    stream.change("Plan", 1, must_not=MustNot())


FAULT = StreamFault("a second plan", plant)
