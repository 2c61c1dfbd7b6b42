"""The second plan drops a task criterion of the first."""

from __future__ import annotations

from planting import Stream, StreamFault

from artoo.contracts.criteria import Criterion, FileExists, Mode

CRITERION = Criterion(text="out.txt is there", mode=Mode.VERIFIABLE, check=FileExists(path="out.txt"))


def plant(stream: Stream) -> None:
    stream.change("Plan", 1, task_criteria=())
    stream.change("DispatchManifest", 1, task_criteria=())
    stream.change("OutcomeSummary", task_verdicts=())
    stream.change("Plan", 0, task_criteria=(CRITERION,))
    stream.change("DispatchManifest", 0, task_criteria=(CRITERION,))


FAULT = StreamFault("a second plan", plant)
