"""What a submission is reviewed by: the run's result with its evidence."""

from __future__ import annotations

from dataclasses import dataclass, field

from artoo.contracts.agents import SubmittedWork
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CallStatus, CriterionVerdict, SubTaskOutcome, ToolCall
from artoo.contracts.plan import Plan
from artoo.contracts.recording import Observed, Source
from artoo.contracts.request import UserRequest
from artoo.contracts.shortened import shortened, without_middle
from artoo.contracts.solution import FinalResult, OutcomeSummary, ReplanRequest

MOST_CALLS, MOST_VERDICTS = 40, 60
LONGEST_TEXT = 16_000
"""Characters of each text of a call: as much as any look at a file brings."""

LONGEST_OUTPUT = 8_000
LONGEST_INPUT_SHOWN, LONGEST_OUTPUT_SHOWN = 120, 200
"""In the line that people see of a call."""


@dataclass(slots=True)
class Gathering:
    """Listens to the stream of one run for what a reviewer must see."""

    run: str = ""
    request: str = ""
    outcomes: dict[str, SubTaskOutcome] = field(default_factory=dict[str, SubTaskOutcome])
    verdicts: tuple[CriterionVerdict, ...] = ()
    guide: str = ""
    seen: str = ""

    def __call__(self, envelope: Envelope) -> None:
        """Hears one message of the run."""
        match envelope.payload:
            case UserRequest() as request:
                self.request = request.text
            case Plan() as plan:
                self.guide = plan.guide or self.guide
                self.seen = plan.heads or self.seen
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
        calls = [call for outcome in self.outcomes.values() for call in outcome.tool_calls][-MOST_CALLS:]
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
            verdicts=tuple(said.values())[:MOST_VERDICTS],
            calls=tuple(map(_line, calls)),
            records=tuple(map(_bounded, calls)),
            seen=without_middle(self.seen, LONGEST_TEXT),
            guide=self.guide,
        )


def _line(call: ToolCall) -> str:
    """A call for people: input and output each in short, so that neither pushes the other out."""
    put_out = call.output if call.status is CallStatus.OK else (call.reason or call.error_output or call.output)
    given, came = " ".join(call.input.split()), " ".join(put_out.split())
    shown = f"{shortened(given, LONGEST_INPUT_SHOWN)} → {shortened(came, LONGEST_OUTPUT_SHOWN)}"
    return f"{call.status}: {call.tool}: {shown}"


def _bounded(call: ToolCall) -> ToolCall:
    """The whole record, as far as a reviewer could be shown it."""
    return call.model_copy(
        update={
            "input": without_middle(call.input, LONGEST_TEXT),
            "output": without_middle(call.output, LONGEST_TEXT),
            "error_output": without_middle(call.error_output, LONGEST_TEXT),
        }
    )
