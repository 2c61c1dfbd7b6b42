"""A mistake of the approach is blamed on the environment, or the other way round."""

from __future__ import annotations

from planting import Stream, StreamFault


def plant(stream: Stream) -> None:
    signal = stream.payload("CorrectionSignal")
    stream.change(
        "CorrectionSignal", failure_class="logical" if signal.failure_class == "environmental" else "environmental"
    )


FAULT = StreamFault("a correction", plant)
