"""What a submission is reviewed by: the run's result with its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from artoo.contracts.agents import SubmittedWork
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CriterionVerdict, SubTaskOutcome
from artoo.contracts.plan import Plan
from artoo.contracts.recording import Observed, Source
from artoo.contracts.request import UserRequest
from artoo.contracts.solution import FinalResult, OutcomeSummary, ReplanRequest

MOST_CALLS, LONGEST_CALL, LONGEST_OUTPUT = 40, 300, 8_000
MOST_VERDICTS = 60


@dataclass(slots=True)
class Gathering:
    """Listens to the stream of one run for what a reviewer must see."""

    run: str = ""
    request: str = ""
    outcomes: dict[str, SubTaskOutcome] = field(default_factory=dict[str, SubTaskOutcome])
    verdicts: tuple[CriterionVerdict, ...] = ()
    guide: str = ""

    def __call__(self, envelope: Envelope) -> None:
        """Hears one message of the run."""
        match envelope.payload:
            case UserRequest() as request:
                self.request = request.text
            case Plan(guide=guide) if guide:
                self.guide = guide
            case Observed(source=Source.SURROUNDINGS, answer={"guide": str(guide)}) if guide:
                self.guide = guide
            case SubTaskOutcome() as outcome:
                self.outcomes[outcome.subtask_id] = outcome
            case OutcomeSummary() | ReplanRequest() as merged:
                self.verdicts = merged.task_verdicts
            case _:
                return

    def dossier(self, result: FinalResult, task: str, number: int, agent: str) -> SubmittedWork:
        """What is handed in."""
        stood = [outcome for outcome in self.outcomes.values() if outcome.status == "matched"]
        verdicts = [*self.verdicts, *(verdict for outcome in stood for verdict in outcome.criteria_verdicts)]
        # A criterion of the only subtask may be the task's as well: it is told once.
        said = {(each.criterion, each.verdict, each.evidence): each for each in verdicts}
        return SubmittedWork(
            board_task=task,
            submission=number,
            agent=agent,
            run=self.run,
            request=self.request,
            summary=result.summary,
            output=result.output[:LONGEST_OUTPUT],
            ending=result.directive.value,
            unmet=tuple(unmet.criterion for unmet in result.unmet),
            withheld=result.withheld,
            verdicts=tuple(_clipped(verdict) for verdict in [*said.values()][:MOST_VERDICTS]),
            calls=tuple(self._calls())[-MOST_CALLS:],
            guide=self.guide,
        )

    def _calls(self) -> Iterator[str]:
        for outcome in self.outcomes.values():
            yield from (f"{call.status}: {call.line()[:LONGEST_CALL]}" for call in outcome.tool_calls)


def _clipped(verdict: CriterionVerdict) -> CriterionVerdict:
    return verdict.model_copy(update={"evidence": verdict.evidence[:LONGEST_CALL]})
