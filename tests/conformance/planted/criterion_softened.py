"""The second plan keeps a task criterion but takes its check away."""

from __future__ import annotations

from planting import Stream, StreamFault

from artoo.contracts.criteria import Criterion, FileExists, Mode

CRITERION = Criterion(text="out.txt is there", mode=Mode.VERIFIABLE, check=FileExists(path="out.txt"))


def plant(stream: Stream) -> None:
    for number, criterion in enumerate((CRITERION, Criterion(text=CRITERION.text, mode=Mode.PLAUSIBLE))):
        stream.change("Plan", number, task_criteria=(criterion,))
        stream.change("DispatchManifest", number, task_criteria=(criterion,))


FAULT = StreamFault("a second plan", plant)
