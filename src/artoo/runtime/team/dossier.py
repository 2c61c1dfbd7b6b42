"""What a submission is reviewed by: the run's result with its evidence, kept beside the files that it made."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from artoo.contracts.agents import SubmittedWork
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CriterionVerdict, SubTaskOutcome
from artoo.contracts.solution import FinalResult, OutcomeSummary, ReplanRequest
from artoo.tools.layers.layer import Layer

MOST_CALLS, LONGEST_CALL, LONGEST_OUTPUT = 40, 300, 8_000
MOST_VERDICTS = 60
FILE = "dossier.json"


@dataclass(slots=True)
class Gathering:
    """Listens to the stream of one run for what a reviewer must see."""

    run: str = ""
    outcomes: dict[str, SubTaskOutcome] = field(default_factory=dict[str, SubTaskOutcome])
    verdicts: tuple[CriterionVerdict, ...] = ()

    def __call__(self, envelope: Envelope) -> None:
        """A tap. Quick; never raises."""
        if not self.run or envelope.task_id != self.run:
            return
        match envelope.payload:
            case SubTaskOutcome() as outcome:
                self.outcomes[outcome.subtask_id] = outcome
            case OutcomeSummary() | ReplanRequest() as merged:
                self.verdicts = merged.task_verdicts
            case _:
                return

    def dossier(
        self, result: FinalResult, task: str, number: int, agent: str, request: str, told: Callable[[str], str]
    ) -> SubmittedWork:
        """What is handed in. `told` makes paths readable."""
        stood = [outcome for outcome in self.outcomes.values() if outcome.status == "matched"]
        verdicts = [*self.verdicts, *(verdict for outcome in stood for verdict in outcome.criteria_verdicts)]
        return SubmittedWork(
            board_task=task,
            submission=number,
            agent=agent,
            run=self.run,
            request=request,
            summary=told(result.summary),
            output=told(result.output)[:LONGEST_OUTPUT],
            ending=result.directive.value,
            unmet=tuple(told(unmet.criterion) for unmet in result.unmet),
            withheld=tuple(told(act) for act in result.withheld),
            verdicts=tuple(_told(verdict, told) for verdict in verdicts[:MOST_VERDICTS]),
            calls=tuple(self._calls(told))[-MOST_CALLS:],
        )

    def _calls(self, told: Callable[[str], str]) -> Iterator[str]:
        for outcome in self.outcomes.values():
            yield from (f"{call.status}: {told(call.line())[:LONGEST_CALL]}" for call in outcome.tool_calls)


def _told(verdict: CriterionVerdict, told: Callable[[str], str]) -> CriterionVerdict:
    return verdict.model_copy(
        update={"criterion": told(verdict.criterion), "evidence": told(verdict.evidence)[:LONGEST_CALL]}
    )


def keep(layer: Layer, work: SubmittedWork) -> None:
    """Writes it beside the submission, durable. Raises OSError."""
    place = layer.place / FILE
    temporary = place.with_suffix(".new")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(work.model_dump_json())
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(place)


def kept(place: Path) -> SubmittedWork | None:
    """What was handed in with the layer at `place`; None when there is none that can be read."""
    try:
        return SubmittedWork.model_validate_json((place / FILE).read_bytes())
    except (OSError, ValidationError):
        return None
