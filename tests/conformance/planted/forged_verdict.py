"""A failed subtask leaves the fast loop as matched, with verdicts that no judge has reached."""

from __future__ import annotations

from planting import Stream, StreamFault, changed


def plant(stream: Stream) -> None:
    outcome = stream.payload("SubTaskOutcome")
    passed = tuple(changed(verdict, verdict="pass", failure_class=None) for verdict in outcome.criteria_verdicts)
    stream.change("SubTaskOutcome", status="matched", criteria_verdicts=passed, failure_reason=None)


FAULT = StreamFault("giving up honestly", plant)
