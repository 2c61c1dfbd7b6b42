"""An executor asks a model under the contract of the planner."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.change("ModelCalled", 1, contract="Plan")


FAULT = StreamFault("two at once", plant)
