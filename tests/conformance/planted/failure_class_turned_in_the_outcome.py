"""An outcome's verdicts carry another failure class than the judge gave."""

from __future__ import annotations

from planting import Stream, StreamFault, changed


def plant(stream: Stream) -> None:
    outcome = stream.payload("SubTaskOutcome")
    turned = tuple(changed(verdict, failure_class="environmental") for verdict in outcome.criteria_verdicts)
    stream.change("SubTaskOutcome", criteria_verdicts=turned)


FAULT = StreamFault("giving up honestly", plant)
