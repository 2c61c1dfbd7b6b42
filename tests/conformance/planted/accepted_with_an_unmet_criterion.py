"""A task criterion is unmet, and the task is accepted."""

from __future__ import annotations

from planting import Stream, StreamFault, changed


def plant(stream: Stream) -> None:
    verdicts = stream.payload("OutcomeSummary").task_verdicts
    stream.change("OutcomeSummary", task_verdicts=tuple(changed(verdict, verdict="fail") for verdict in verdicts))


FAULT = StreamFault("a criterion on a file", plant)
