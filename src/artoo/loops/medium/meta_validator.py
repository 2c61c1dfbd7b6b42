"""R4b, the sensor of the medium loop: collects all outcomes, merges, and tells R7 what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from artoo.contracts.criteria import Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CriterionJudged, CriterionVerdict, SubTaskOutcome
from artoo.contracts.images import AttachedImage
from artoo.contracts.plan import DispatchManifest, Joined
from artoo.contracts.request import TaskSpec
from artoo.contracts.solution import Halt, OutcomeSummary, ReplanRequest, StoppedBy
from artoo.loops.asking import Asker
from artoo.loops.fast.checks import run_check
from artoo.loops.fast.facts import own_knowledge, own_words_on
from artoo.loops.fast.judging import from_check, left_open
from artoo.loops.medium.fan_in import (
    FanIn,
    concluding,
    conflict_verdict,
    covered,
    judged,
    merged_output,
    not_judged,
    of_the_whole,
    refuted,
    unfinished,
)
from artoo.loops.medium.merging import Merged, merge
from artoo.loops.role import attend, listen
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.evidence import EvidenceSource


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
        self._images: tuple[AttachedImage, ...] = ()
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
                self._intent, self._images = spec.intent, spec.images
                self._started = self._clock.monotonic()
            case DispatchManifest() as manifest:
                carried = tuple(self._known[key] for key in manifest.carried if key in self._known)
                self._fan_in = FanIn(manifest, carried)
                if manifest.reply:
                    self._judging = group.create_task(self._conclude(self._fan_in, envelope))
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
        output, verdicts = await self._result(fan_in, cause)
        verdicts += tuple(conflict_verdict(conflict) for conflict in fan_in.conflicts)
        for verdict in verdicts:
            self._port.publish(CriterionJudged(verdict=verdict), cause=cause)
        if fan_in.failed or any(verdict.verdict == "fail" for verdict in verdicts):
            self._port.publish(self._request(fan_in, verdicts, None, output), cause=cause)
            return
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

    async def _result(self, fan_in: FanIn, cause: Envelope) -> tuple[str, tuple[CriterionVerdict, ...]]:
        """The answer to the whole, and a verdict on each of the task's criteria."""
        criteria = fan_in.manifest.task_criteria
        if fan_in.manifest.reply:
            return await self._reply(fan_in.manifest.reply, criteria)
        if fan_in.failed or fan_in.conflicts:
            return await self._unfinished(fan_in, criteria)
        single = fan_in.matched[0] if len(fan_in.matched) == 1 else None
        if single is None and all(each.check is not None for each in criteria):
            single = concluding(fan_in)
        if single is not None:
            return await self._of_one(fan_in, single, criteria, cause)
        return await self._of_several(fan_in, criteria, cause)

    async def _unfinished(
        self, fan_in: FanIn, criteria: Sequence[Criterion]
    ) -> tuple[str, tuple[CriterionVerdict, ...]]:
        """What was reached and what that meets; where nothing was, why an executor says that it cannot be done."""
        output, outcomes = merged_output(fan_in.matched or fan_in.hopeless), fan_in.everything
        known = covered(outcomes[0]) if len(outcomes) == 1 else {}
        checks = await self._checked(criteria, known, fan_in, output)
        known |= {text: unfinished(verdict) for text, verdict in checks.items()}
        return output, tuple(known.get(each.text) or not_judged(each) for each in criteria)

    async def _reply(self, reply: str, criteria: Sequence[Criterion]) -> tuple[str, tuple[CriterionVerdict, ...]]:
        """An answer for which nothing on this machine was needed. It speaks of nothing here but an image."""
        seen = self._images if self._asker.known.images else ()
        fact = None if seen else await own_knowledge(reply, (self._intent,), self._source)
        if fact is not None:
            return reply, tuple(refuted(each, fact.message) for each in criteria)
        known = await self._checked(criteria, {}, None, reply)
        why = own_words_on(seen)
        return reply, tuple(known.get(each.text) or of_the_whole(left_open(each, why)) for each in criteria)

    async def _of_one(
        self, fan_in: FanIn, outcome: SubTaskOutcome, criteria: Sequence[Criterion], cause: Envelope
    ) -> tuple[str, tuple[CriterionVerdict, ...]]:
        """One subtask's output is the answer; criteria that its own loop did not judge are checked, or read."""
        known = covered(outcome)
        known |= await self._checked(criteria, known, fan_in, outcome.output)
        asked = [each for each in criteria if each.text not in known]
        if asked or self._always_ask:
            known |= self._read(asked, await merge(self._asker, self._intent, fan_in.matched, asked, cause))
        return outcome.output, tuple(known[each.text] for each in criteria)

    async def _of_several(
        self, fan_in: FanIn, criteria: Sequence[Criterion], cause: Envelope
    ) -> tuple[str, tuple[CriterionVerdict, ...]]:
        """The answer is written from what all of them found."""
        asked = [each for each in criteria if each.check is None]
        merged = await merge(self._asker, self._intent, fan_in.matched, asked, cause)
        known = self._read(asked, merged) | await self._checked(criteria, {}, fan_in, merged.answer)
        return merged.answer, tuple(known[each.text] for each in criteria)

    def _read(self, criteria: Sequence[Criterion], merged: Merged) -> dict[str, CriterionVerdict]:
        trusted = not self._asker.known.small
        return {
            each.text: judged(each, verdict, trusted=trusted)
            for each, verdict in zip(criteria, merged.verdicts, strict=True)
        }

    async def _checked(
        self,
        criteria: Sequence[Criterion],
        known: Mapping[str, CriterionVerdict],
        fan_in: FanIn | None,
        output: str,
    ) -> dict[str, CriterionVerdict]:
        """Those with a check and not `known`, by their text."""
        calls = [call for outcome in fan_in.everything for call in outcome.tool_calls] if fan_in is not None else []
        verdicts: dict[str, CriterionVerdict] = {}
        for each in criteria:
            if each.check is not None and each.text not in known:
                found = await run_check(each.check, output=output, tool_calls=calls, source=self._source)
                verdicts[each.text] = of_the_whole(from_check(each, found))
        return verdicts

    def _request(
        self,
        fan_in: FanIn | None,
        verdicts: tuple[CriterionVerdict, ...],
        stopped_by: StoppedBy | None,
        output: str | None = None,
    ) -> ReplanRequest:
        outcomes = fan_in.everything if fan_in else ()
        replans = fan_in.manifest.round - 1 if fan_in else 0
        unmet = [verdict.criterion for verdict in verdicts if verdict.verdict == "fail"]
        unmet += [outcome.failure_reason or outcome.intent for outcome in outcomes if outcome.status == "failed"]
        if stopped_by is None and any(outcome.refused for outcome in outcomes):
            stopped_by = StoppedBy.REFUSED_BY_USER
        if stopped_by is None and any(outcome.hopeless for outcome in outcomes):
            stopped_by = StoppedBy.MISSING_INPUT
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
            merged_output=output if output is not None else merged_output(fan_in.matched) if fan_in else "",
            gap_summary="; ".join(dict.fromkeys(unmet))[:1_000],
        )
