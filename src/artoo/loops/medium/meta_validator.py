"""R4b, the sensor of the medium loop: collects all outcomes, merges, and tells R7 what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from artoo.contracts.criteria import Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ModelAnswerInvalid
from artoo.contracts.execution import CriterionJudged, CriterionVerdict, FailureClass, SubTaskOutcome
from artoo.contracts.plan import DispatchManifest, Joined
from artoo.contracts.request import TaskSpec
from artoo.contracts.solution import Halt, OutcomeSummary, ReplanRequest, StoppedBy
from artoo.loops.asking import Asker
from artoo.loops.fast.checks import CheckResult, run_check
from artoo.loops.fast.report import MergeReport, numbered, usable_judgements
from artoo.loops.medium.merge import (
    FanIn,
    conflict_verdict,
    judged_verdict,
    merged_output,
    not_judged,
    task_verdict,
)
from artoo.loops.role import attend, listen
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.evidence import EvidenceSource
from artoo.prompts.segments import Segment

_OUTPUT_SHOWN = 4_000


class MetaValidator:
    """Answers each round once: OutcomeSummary when all is met, else ReplanRequest, always to R7."""

    def __init__(
        self,
        port: Port,
        asker: Asker,
        source: EvidenceSource,
        clock: Clock,
        *,
        max_replans: int,
        always_ask: bool = False,
    ) -> None:
        self._port = port
        self._asker = asker
        self._source = source
        self._clock = clock
        self._max_replans = max_replans
        self._always_ask = always_ask
        self._started = clock.monotonic()
        self._intent = ""
        self._fan_in: FanIn | None = None
        self._known: dict[str, SubTaskOutcome] = {}
        self._judging: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Collects and judges until the port closes.

        Judging runs beside the inbox, so that a Halt is answered while a model is still thinking.
        """
        async with asyncio.TaskGroup() as group:

            async def handle(envelope: Envelope) -> None:
                await self._handle(envelope, group)

            await listen(self._port, handle)
            if self._judging is not None:
                self._judging.cancel()

    async def _handle(self, envelope: Envelope, group: asyncio.TaskGroup) -> None:
        match envelope.payload:
            case TaskSpec() as spec:
                self._intent = spec.intent
                self._started = self._clock.monotonic()
            case DispatchManifest() as manifest:
                carried = tuple(self._known[key] for key in manifest.carried if key in self._known)
                self._fan_in = FanIn(manifest, carried)
            case SubTaskOutcome() as outcome if self._fan_in is not None and self._fan_in.add(outcome):
                self._known[outcome.subtask_id] = outcome
            case Joined() as joined if self._fan_in is not None:
                self._fan_in.join(joined)
                if self._fan_in.complete:
                    self._judging = group.create_task(self._conclude(self._fan_in, envelope))
            case Halt() as halt:
                if self._judging is not None:
                    self._judging.cancel()
                self._port.publish(self._request(self._fan_in, (), halt.stopped_by), cause=envelope)
            case _:
                return

    async def _conclude(self, fan_in: FanIn, cause: Envelope) -> None:
        async def judge(envelope: Envelope) -> None:
            await self._judge(fan_in, envelope)

        await attend(self._port, judge, cause)

    async def _judge(self, fan_in: FanIn, cause: Envelope) -> None:
        verdicts = await self._task_verdicts(fan_in, cause)
        verdicts += tuple(conflict_verdict(conflict) for conflict in fan_in.conflicts)
        for verdict in verdicts:
            self._port.publish(CriterionJudged(verdict=verdict), cause=cause)
        if fan_in.failed or any(verdict.verdict == "fail" for verdict in verdicts):
            self._port.publish(self._request(fan_in, verdicts, None), cause=cause)
            return
        output = merged_output(fan_in.matched)
        self._port.publish(
            OutcomeSummary(
                task_id=self._port.task_id,
                merged_output=output,
                summary=output[:400],
                outcomes=fan_in.everything,
                task_verdicts=verdicts,
            ),
            cause=cause,
        )

    async def _task_verdicts(self, fan_in: FanIn, cause: Envelope) -> tuple[CriterionVerdict, ...]:
        criteria = fan_in.manifest.task_criteria
        checks = await self._checks(criteria, fan_in)
        outcomes = fan_in.everything
        by_code = {each.text: task_verdict(each, outcomes, checks) for each in criteria}
        open_criteria = [each for each in criteria if by_code[each.text] is None]
        judged: dict[str, CriterionVerdict] = {}
        if fan_in.failed or fan_in.conflicts:
            judged = {each.text: not_judged(each) for each in open_criteria}
        elif open_criteria or self._always_ask:
            asked = await self._ask(open_criteria or list(criteria), fan_in, cause)
            judged = {text: verdict for text, verdict in asked.items() if by_code.get(text) is None}
        return tuple(by_code[each.text] or judged[each.text] for each in criteria)

    async def _checks(self, criteria: Sequence[Criterion], fan_in: FanIn) -> dict[str, CheckResult]:
        output = merged_output(fan_in.matched)
        calls = [call for outcome in fan_in.everything for call in outcome.tool_calls]
        return {
            each.text: await run_check(each.check, output=output, tool_calls=calls, source=self._source)
            for each in criteria
            if each.check is not None
        }

    async def _ask(self, criteria: list[Criterion], fan_in: FanIn, cause: Envelope) -> dict[str, CriterionVerdict]:
        output = merged_output(fan_in.matched)[:_OUTPUT_SHOWN]
        segments = {
            Segment.TASK: self._intent,
            Segment.SUBTASK: f"Criteria:\n{numbered(criteria)}",
            Segment.EVIDENCE: output,
        }
        try:
            report = await self._asker.ask("MergeReport", MergeReport, segments, cause=cause, max_tokens=600)
        except ModelAnswerInvalid as error:
            reason = f"no usable verdict: {error}"
            return {each.text: judged_verdict(each, False, reason, FailureClass.LOGICAL) for each in criteria}
        # What a subtask was for stands above its output, and is no evidence that it was done.
        judgements = usable_judgements(report.verdicts, criteria, "\n".join(each.output for each in fan_in.matched))
        return {
            each.text: judged_verdict(each, judgement.passed, judgement.evidence, judgement.failure_class)
            for each, judgement in zip(criteria, judgements, strict=True)
        }

    def _request(
        self, fan_in: FanIn | None, verdicts: tuple[CriterionVerdict, ...], stopped_by: StoppedBy | None
    ) -> ReplanRequest:
        outcomes = fan_in.everything if fan_in else ()
        replans = fan_in.manifest.round - 1 if fan_in else 0
        unmet = [verdict.criterion for verdict in verdicts if verdict.verdict == "fail"]
        unmet += [outcome.failure_reason or outcome.intent for outcome in outcomes if outcome.status == "failed"]
        if stopped_by is None and any(outcome.hopeless for outcome in outcomes):
            stopped_by = StoppedBy.MISSING_INPUT
        if stopped_by is None and any(outcome.refused for outcome in outcomes):
            stopped_by = StoppedBy.REFUSED_BY_USER
        spent = replans >= self._max_replans or stopped_by is not None
        return ReplanRequest(
            task_id=self._port.task_id,
            outcomes=outcomes,
            task_verdicts=verdicts,
            not_run=fan_in.not_run if fan_in else 0,
            corrections=sum(outcome.corrections for outcome in outcomes),
            elapsed_ms=round((self._clock.monotonic() - self._started) * 1_000),
            recommendation="abandon" if spent else "replan",
            stopped_by=stopped_by,
            merged_output=merged_output(fan_in.matched) if fan_in else "",
            gap_summary="; ".join(dict.fromkeys(unmet))[:1_000],
        )
