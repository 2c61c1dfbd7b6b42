"""The second plan hands out subtasks without the prohibitions of the directive."""

from __future__ import annotations

from planting import Stream, StreamFault

from artoo.contracts.plan import MustNot


def plant(stream: Stream) -> None:
    stream.change("SubTask", 1, must_not=MustNot())
    stream.change("Plan", 1, must_not=MustNot())


FAULT = StreamFault("a second plan", plant)
