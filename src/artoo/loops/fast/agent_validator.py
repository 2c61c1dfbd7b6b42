"""R4a, sensor and controller of the fast loop: scores each criterion on evidence, corrects at most twice."""

from __future__ import annotations

from dataclasses import dataclass, field

from artoo.contracts.criteria import Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ModelAnswerInvalid
from artoo.contracts.execution import (
    CriterionJudged,
    CriterionVerdict,
    ExecutionResult,
    GapPoint,
    SubTaskOutcome,
    ToolCall,
)
from artoo.contracts.plan import SubTask
from artoo.loops.asking import Asker
from artoo.loops.fast import judging
from artoo.loops.fast.checks import run_check
from artoo.loops.fast.correction import correction_for
from artoo.loops.fast.evidence import assess
from artoo.loops.fast.report import ValidationReport, numbered, usable_judgements
from artoo.loops.role import listen
from artoo.ports.bus import Port
from artoo.ports.evidence import EvidenceSource
from artoo.prompts.segments import Segment

_EVIDENCE_SHOWN = 3_000


@dataclass(slots=True)
class _Record:
    """What this validator has seen of its subtask."""

    subtask: SubTask
    failures: dict[str, int] = field(default_factory=dict[str, int])
    trajectory: list[GapPoint] = field(default_factory=list[GapPoint])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])


@dataclass(frozen=True, slots=True)
class _Judged:
    verdicts: tuple[CriterionVerdict, ...]
    advice: str = ""
    final: bool = False

    @property
    def failed(self) -> tuple[CriterionVerdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.verdict == "fail")


class AgentValidator:
    """Paired one to one with an executor. `max_retries` corrections, then the outcome."""

    def __init__(
        self, port: Port, asker: Asker, source: EvidenceSource, *, max_retries: int, always_ask: bool = False
    ) -> None:
        self._port = port
        self._asker = asker
        self._source = source
        self._max_retries = max_retries
        self._always_ask = always_ask
        self._record: _Record | None = None

    async def run(self) -> None:
        """Judges until the port closes."""
        await listen(self._port, self._handle)

    async def _handle(self, envelope: Envelope) -> None:
        match envelope.payload:
            case SubTask() as subtask:
                self._record = _Record(subtask)
            case ExecutionResult() as result if self._record is not None:
                await self._judge_attempt(self._record, result, envelope)
            case _:
                return

    async def _judge_attempt(self, record: _Record, result: ExecutionResult, cause: Envelope) -> None:
        record.calls.extend(result.tool_calls)
        judged = await self._judge(record, result, cause)
        attempts = judging.Attempts(result.attempt, record.failures)
        judged = _Judged(tuple(map(attempts.counted, judged.verdicts)), judged.advice, judged.final)
        for verdict in judged.verdicts:
            self._port.publish(
                CriterionJudged(subtask_id=result.subtask_id, attempt=result.attempt, verdict=verdict), cause=cause
            )
        record.trajectory.append(_gap(result.attempt, judged))
        if judged.failed and not judged.final and result.attempt <= self._max_retries:
            self._port.publish(correction_for(result, judged.failed, judged.advice), cause=cause)
        else:
            self._port.publish(_outcome(record, result, judged), cause=cause)

    async def _judge(self, record: _Record, result: ExecutionResult, cause: Envelope) -> _Judged:
        criteria = record.subtask.success_criteria
        if result.status == "failed" or result.infrastructure is not None:
            return _Judged(tuple(judging.failed_outright(criteria, result)), final=True)
        decided: dict[int, CriterionVerdict] = {}
        for index, criterion in enumerate(criteria):
            if criterion.check is not None:
                check = await run_check(
                    criterion.check, output=result.output, tool_calls=result.tool_calls, source=self._source
                )
                decided[index] = judging.from_check(criterion, check)
        assessment = assess(result.output, result.tool_calls, intent=record.subtask.intent)
        lie = judging.from_evidence(assessment, result)
        open_criteria = {index: each for index, each in enumerate(criteria) if index not in decided}
        advice = ""
        if lie is not None:
            decided |= {index: judging.undecided(each, lie.evidence) for index, each in open_criteria.items()}
        elif open_criteria or self._always_ask:
            asked, advice = await self._ask(open_criteria or dict(enumerate(criteria)), record, result, cause)
            decided |= {index: verdict for index, verdict in asked.items() if index in open_criteria}
        verdicts = [decided[index] for index in sorted(decided)]
        if result.status == "uncertain" and lie is None and not any(c.check for c in criteria):
            verdicts = [judging.undecided(each, "the executor was not certain") for each in criteria]
        return _Judged((*verdicts, *([lie] if lie is not None else [])), advice)

    async def _ask(
        self, criteria: dict[int, Criterion], record: _Record, result: ExecutionResult, cause: Envelope
    ) -> tuple[dict[int, CriterionVerdict], str]:
        evidence = _evidence(result)
        segments = {
            Segment.TASK: record.subtask.intent,
            Segment.SUBTASK: f"Criteria:\n{numbered(list(criteria.values()))}\nClaim: {result.output[:1_000]}",
            Segment.EVIDENCE: evidence,
        }
        try:
            report = await self._asker.ask(
                "ValidationReport", ValidationReport, segments, cause=cause, max_tokens=600
            )
        except ModelAnswerInvalid as error:
            return {i: judging.undecided(each, f"no usable verdict: {error}") for i, each in criteria.items()}, ""
        judgements = usable_judgements(report.verdicts, list(criteria.values()), evidence)
        verdicts = {
            index: judging.from_judge(each, judgement)
            for (index, each), judgement in zip(criteria.items(), judgements, strict=True)
        }
        return verdicts, report.what_to_do


def _evidence(result: ExecutionResult) -> str:
    """What a quote must come from: the tools' output; the text itself when the task needed no tool."""
    if not result.tool_calls:
        return result.output[:_EVIDENCE_SHOWN]
    share = max(300, _EVIDENCE_SHOWN // len(result.tool_calls))
    return "\n\n".join(
        f"{call.tool}: {call.input[:200]} [{call.status}, exit {call.exit_code}]\n"
        f"{call.output[:share]}{call.error_output[: share // 2]}"
        + (f"\nmade: {', '.join(call.changes)}" if call.changes else "")
        for call in result.tool_calls[-8:]
    )


def _gap(attempt: int, judged: _Judged) -> GapPoint:
    total = len(judged.verdicts)
    failed = judged.failed
    return GapPoint(
        attempt=attempt,
        score=1.0 if not total else (total - len(failed)) / total,
        unmet_criteria=tuple(verdict.criterion for verdict in failed),
        failure_class=failed[0].failure_class if failed else None,
    )


def _outcome(record: _Record, result: ExecutionResult, judged: _Judged) -> SubTaskOutcome:
    failed = judged.failed
    return SubTaskOutcome(
        subtask_id=result.subtask_id,
        parent_task_id=record.subtask.parent_task_id,
        status="failed" if failed else "matched",
        intent=record.subtask.intent,
        output=result.output,
        failure_reason=f"{failed[0].criterion}: {failed[0].evidence}" if failed else None,
        gap_trajectory=tuple(record.trajectory),
        criteria_verdicts=judged.verdicts,
        tool_calls=tuple(record.calls),
        infrastructure=result.infrastructure,
    )
