"""R4a, sensor and controller of the fast loop: scores each criterion on evidence, corrects at most twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from artoo.contracts.criteria import Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ModelAnswerInvalid
from artoo.contracts.execution import (
    CorrectionSignal,
    CriterionJudged,
    CriterionVerdict,
    ExecutionResult,
    GapPoint,
    SubTaskOutcome,
    ToolCall,
)
from artoo.contracts.plan import SubTask
from artoo.loops.asking import Asker
from artoo.loops.fast import judging, second_file, second_look
from artoo.loops.fast.checks import run_check
from artoo.loops.fast.correction import correction_for
from artoo.loops.fast.evidence import Finding, assess
from artoo.loops.fast.pointed import asks_what_is_named
from artoo.loops.fast.report import ValidationReport, numbered, usable_judgements
from artoo.loops.fast.request_rules import (
    UNCOMPUTED,
    absent_inputs,
    elsewhere,
    left_out_endings,
    may_name_files,
    names_only,
    shown_only,
    uncomputed,
    unread_input,
)
from artoo.loops.fast.second_look import SecondLook
from artoo.loops.named_files import named_directories
from artoo.loops.role import listen
from artoo.ports.bus import Port
from artoo.ports.evidence import EvidenceSource
from artoo.ports.surroundings import Surroundings, SurroundingsSource
from artoo.prompts.segments import Segment

_EVIDENCE_SHOWN = 3_000
_ASSESSED_AT_ONCE = 2_000
"""Characters of claim and evidence that are assessed within a millisecond: a thread would cost more."""


@dataclass(slots=True)
class _Record:
    """What this validator has seen of its subtask."""

    subtask: SubTask
    failures: dict[str, int] = field(default_factory=dict[str, int])
    trajectory: list[GapPoint] = field(default_factory=list[GapPoint])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    around: Surroundings | None = None
    figures: list[ExecutionResult] = field(default_factory=list[ExecutionResult])
    first_verdicts: tuple[CriterionVerdict, ...] = ()
    """Those of the first figure, which stand with it."""
    made: second_file.Made | None = None

    @property
    def answers(self) -> tuple[str, ...]:
        """What was computed so far, in earlier rounds and in this one."""
        return (*self.subtask.unconfirmed, *(result.output for result in self.figures))


@dataclass(frozen=True, slots=True)
class _Judged:
    """`final`: no correction can help. `hopeless`: no other plan can either. `again`: only a second way is due.

    `mendable`: the right tool was used on the wrong thing. `by_program`: what ran could only show, not compute.
    """

    verdicts: tuple[CriterionVerdict, ...]
    advice: str = ""
    final: bool = False
    hopeless: bool = False
    again: bool = False
    mendable: bool = False
    by_program: bool = False

    @property
    def failed(self) -> tuple[CriterionVerdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.verdict == "fail")


class AgentValidator:
    """Paired one to one with an executor. `max_retries` corrections, then the outcome."""

    def __init__(
        self,
        port: Port,
        asker: Asker,
        source: EvidenceSource,
        surroundings: SurroundingsSource,
        *,
        max_retries: int,
        always_ask: bool = False,
        second_look: SecondLook = SecondLook.AUTO,
    ) -> None:
        self._port = port
        self._asker = asker
        self._source = source
        self._surroundings = surroundings
        self._max_retries = max_retries
        self._always_ask = always_ask
        self._second_look = second_look
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
        judged = self._looked_at_twice(record, result, await self._judge(record, result, cause))
        judged = await self._made_twice(record, result, judged)
        attempts = judging.Attempts(result.attempt, record.failures)
        judged = replace(judged, verdicts=tuple(map(attempts.counted, judged.verdicts)))
        if any(call.withheld_by == "person" for call in result.tool_calls):
            judged = replace(judged, final=True)  # a person's no is not tried again
        for verdict in judged.verdicts:
            self._port.publish(
                CriterionJudged(subtask_id=result.subtask_id, attempt=result.attempt, verdict=verdict), cause=cause
            )
        record.trajectory.append(_gap(result.attempt, judged))
        if judged.failed and not judged.final and result.attempt <= self._max_retries:
            self._port.publish(_correction(record, result, judged), cause=cause)
        else:
            self._port.publish(_outcome(record, result, judged), cause=cause)

    def _looked_at_twice(self, record: _Record, result: ExecutionResult, judged: _Judged) -> _Judged:
        """Holds a computed figure back until a second way confirms it, as far as attempts allow.

        A figure that no second way could check stands; one that a second way contradicts does not.
        """
        wanted = self._second_look.wanted(small_model=result.small_model)
        last = judged.final or result.attempt > self._max_retries
        if judged.failed:
            unrefuted = last and not judged.hopeless and len(record.figures) == 1 == len(record.answers)
            return _Judged((*record.first_verdicts, second_look.unrefuted())) if unrefuted else judged
        if not wanted or not second_look.deserved(record.subtask.intent, result):
            return judged
        record.first_verdicts = record.first_verdicts or judged.verdicts
        record.figures.append(result)
        confirmed = second_look.confirmed(record.figures, record.subtask.unconfirmed, record.subtask.intent)
        if confirmed is not None:
            record.figures = [confirmed]
            return judged
        if last and len(record.answers) == 1:
            return judged
        return _Judged((*judged.verdicts, second_look.open_verdict(record.answers)), again=True)

    async def _made_twice(self, record: _Record, result: ExecutionResult, judged: _Judged) -> _Judged:
        """The same for a file that a program made of another one: its content is computed a second time.

        One that no second way could check stands, as long as it is still what was made.
        """
        made, last = record.made, judged.final or result.attempt > self._max_retries
        if made is None:
            path = second_file.made_file(record.subtask.intent, result)
            wanted = self._second_look.wanted(small_model=result.small_model)
            if judged.failed or last or path is None or not wanted:
                return judged
            made = second_file.Made(result, path)
        held = (await self._source.file(made.path)).text or ""
        if record.made is None and not 0 < len(held) <= second_file.LONGEST:
            return judged
        record.made = made
        if judged.failed:
            stands = last and not judged.hopeless and len(made.ways) == 1 and second_file.same(made.ways[0], held)
            return _Judged((*record.first_verdicts, second_file.unrefuted(made))) if stands else judged
        record.first_verdicts = record.first_verdicts or judged.verdicts
        made.ways.append(second_file.content_of(result, made.path, held))
        if made.agreed(held) or (last and len(made.ways) == 1):
            return judged
        return _Judged((*judged.verdicts, second_file.open_verdict(made, held)), again=True)

    async def _judge(self, record: _Record, result: ExecutionResult, cause: Envelope) -> _Judged:
        """The order of SPEC section 3; what an earlier step decided, a later one does not touch."""
        criteria = record.subtask.success_criteria
        absent = await self._absent_input(record, result)
        if result.status == "failed" or result.infrastructure is not None:
            verdicts = judging.failed_outright(criteria, result)
            return _Judged(tuple(verdicts), final=True, hopeless=absent is not None)
        decided = await self._checked(criteria, result)
        findings = [absent] if absent is not None else await self._findings(record, result)
        lie = judging.from_findings(findings, result)
        open_criteria = {index: each for index, each in enumerate(criteria) if index not in decided}
        advice = ""
        if lie is not None:
            decided |= {index: judging.undecided(each, lie.evidence) for index, each in open_criteria.items()}
        elif result.status == "uncertain" and open_criteria:
            reason = "the executor was not certain"
            decided |= {index: judging.undecided(each, reason) for index, each in open_criteria.items()}
        elif open_criteria or self._always_ask:
            asked, advice = await self._ask(open_criteria or dict(enumerate(criteria)), record, result, cause)
            decided |= {index: verdict for index, verdict in asked.items() if index in open_criteria}
        verdicts = [decided[index] for index in sorted(decided)]
        hopeless = absent is not None
        return _Judged(
            (*verdicts, *([lie] if lie is not None else [])),
            advice,
            final=hopeless,
            hopeless=hopeless,
            mendable=bool(findings) and all(finding.mendable for finding in findings),
            by_program=any(finding.rule == UNCOMPUTED for finding in findings),
        )

    async def _checked(self, criteria: Sequence[Criterion], result: ExecutionResult) -> dict[int, CriterionVerdict]:
        """The criteria with a check, decided by it alone."""
        return {
            index: judging.from_check(
                criterion,
                await run_check(
                    criterion.check, output=result.output, tool_calls=result.tool_calls, source=self._source
                ),
            )
            for index, criterion in enumerate(criteria)
            if criterion.check is not None
        }

    async def _findings(self, record: _Record, result: ExecutionResult) -> list[Finding]:
        """What the evidence says against the claim; assessing much text takes a while, so beside the loop."""
        failed = judging.failed_act(result)
        if failed is not None:
            return [failed]  # what is said then are the tool's words and ours: no claim to be assessed
        intent, calls = record.subtask.intent, result.tool_calls
        if result.status == "uncertain" and not calls:
            # Why there is no result is said in artoo's own words: no claim, and nothing that a check may pass.
            return [Finding("no_result", result.output[:500] or "nothing was done")]
        if len(result.output) + sum(len(call.input) + len(call.output) for call in calls) <= _ASSESSED_AT_ONCE:
            assessment = assess(result.output, calls, intent=intent)
        else:
            assessment = await asyncio.to_thread(assess, result.output, calls, intent=intent)
        places = [name for name in named_directories(intent) if (await self._source.file(name)).is_directory]
        rules = (
            uncomputed(intent, calls, small_model=result.small_model),
            names_only(intent, calls),
            unread_input(intent, calls, record.around.points_to if record.around is not None else ()),
            elsewhere(places, calls),
            left_out_endings(intent, calls),
            shown_only(intent, result.output, calls) if result.small_model else None,
        )
        return [*assessment.findings, *(finding for finding in rules if finding is not None)]

    async def _absent_input(self, record: _Record, result: ExecutionResult) -> Finding | None:
        if not may_name_files(record.subtask.intent):
            return None
        if record.around is None:
            record.around = await self._surroundings.look(record.subtask.intent)
        return absent_inputs(record.subtask.intent, record.around.missing, result.tool_calls)

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
        judgements = usable_judgements(report.verdicts, list(criteria.values()), _quotable(result))
        verdicts = {
            index: judging.from_judge(each, judgement)
            for (index, each), judgement in zip(criteria.items(), judgements, strict=True)
        }
        return verdicts, report.what_to_do


def _correction(record: _Record, result: ExecutionResult, judged: _Judged) -> CorrectionSignal:
    if judged.again:
        return second_file.signal(result, record.made) if record.made is not None else second_look.signal(result)
    advice = "\n".join((*_where_it_is(record), judged.advice))
    known = record.around.first_lines if record.around is not None else ()
    signal = correction_for(result, judged.failed, advice, mendable=judged.mendable, first_lines=known)
    return signal.model_copy(update={"by_program": True}) if judged.by_program else signal


def _where_it_is(record: _Record) -> list[str]:
    """Names the file that is meant outright: a small model does not draw that conclusion from a listing."""
    if record.around is None:
        return []
    instead = [f"{name} cannot be used; use {place} instead." for name, place in record.around.found_elsewhere]
    named = (one for one in record.around.points_to if asks_what_is_named(record.subtask.intent, one[0]))
    return [*instead, *(f"{name} names {path}." for name, path in named)]


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


def _quotable(result: ExecutionResult) -> str:
    """What proves something: what tools put out and made, and the input of those that made something.

    That a call was made proves nothing about what it found.
    """
    if not result.tool_calls:
        return result.output
    return "\n".join(
        "\n".join((call.output, call.error_output, *call.changes, call.input if call.changes else ""))
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
    if not failed and record.made is not None:
        result = record.made.result
    elif not failed and len(record.figures) == 1:
        result = record.figures[0]
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
        hopeless=judged.hopeless,
        unconfirmed=record.answers if failed else (),
    )
