"""R4b sums up an outcome that nobody has published."""

from __future__ import annotations

from planting import Stream, StreamFault, changed


def plant(stream: Stream) -> None:
    summary = stream.payload("OutcomeSummary")
    stream.change(
        "OutcomeSummary", outcomes=(*summary.outcomes, changed(summary.outcomes[0], subtask_id="unheard-of"))
    )


FAULT = StreamFault("two at once", plant)
