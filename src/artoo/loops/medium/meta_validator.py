"""R4b, the sensor of the medium loop: collects all outcomes, merges, and tells R7 what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from artoo.contracts.criteria import Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CriterionJudged, CriterionVerdict, SubTaskOutcome
from artoo.contracts.failure import FailureClass
from artoo.contracts.images import AttachedImage
from artoo.contracts.plan import DispatchManifest, Joined
from artoo.contracts.request import TaskSpec
from artoo.contracts.settling import ApplyMode, ChangeClass
from artoo.contracts.solution import Halt, OutcomeSummary, ReplanRequest, StoppedBy
from artoo.evidence.facts import own_knowledge
from artoo.loops.asking import Asker
from artoo.loops.medium.fan_in import FanIn, concluding, covered, merged_output, of_the_whole, refuted, unfinished
from artoo.loops.medium.gaps import verdicts_of
from artoo.loops.medium.merging import Merged, merge
from artoo.loops.medium.plan_draft import of_person
from artoo.loops.prepared import earlier, prepared
from artoo.loops.role import attend, listen
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.evidence import EvidenceSource
from artoo.ports.surroundings import SurroundingsSource
from artoo.verdicts.judging import OWN_WORDS, checked, left_open
from artoo.verdicts.shown import DIFFERENCE_SHOWN

_Verdicts = Mapping[str, CriterionVerdict]
"""On criteria of the whole, by their text."""


@dataclass(slots=True, eq=False)
class MetaValidator:
    """Answers each round once: OutcomeSummary when all is met, else ReplanRequest, always to R7."""

    port: Port
    asker: Asker
    source: EvidenceSource
    surroundings: SurroundingsSource
    clock: Clock
    max_replans: int
    always_ask: bool = False
    unasked: frozenset[ChangeClass] = ApplyMode.NEW.unasked
    _intent: str = field(default="", init=False)
    _earlier: str = field(default="", init=False)
    _images: tuple[AttachedImage, ...] = field(default=(), init=False)
    _before: dict[str, SubTaskOutcome] = field(default_factory=dict[str, SubTaskOutcome], init=False)
    _last: dict[str, CriterionVerdict] = field(default_factory=dict[str, CriterionVerdict], init=False)
    _started: float = field(init=False)
    _fan_in: FanIn = field(init=False)
    _judging: asyncio.Task[None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._started = self.clock.monotonic()
        self._fan_in = FanIn(DispatchManifest(task_id=self.port.task_id, round=1, subtasks=()))

    async def run(self) -> None:
        """Collects and judges until the port closes.

        Judging runs beside the inbox, so that a Halt is answered while a model is still thinking.
        """
        async with asyncio.TaskGroup() as group:
            await listen(self.port, partial(self._handle, group))
            if self._judging is not None:
                self._judging.cancel()

    async def _handle(self, group: asyncio.TaskGroup, envelope: Envelope) -> None:
        match envelope.payload:
            case TaskSpec() as spec:
                self._intent, self._images, self._earlier = spec.intent, spec.images, earlier(spec)
                self._started = self.clock.monotonic()
            case DispatchManifest() as manifest:
                self._before |= {outcome.subtask_id: outcome for outcome in self._fan_in.everything}
                carried = tuple(self._before[key] for key in manifest.carried if key in self._before)
                self._fan_in = FanIn(manifest, carried)
                if manifest.reply:
                    self._conclude(group, envelope)
                elif manifest.question:
                    asks = self._request(self._fan_in, (), StoppedBy.QUESTION, manifest.question)
                    self.port.publish(asks, cause=envelope)
            case SubTaskOutcome() as outcome:
                self._fan_in.add(outcome)
            case Joined() as joined:
                self._fan_in.join(joined)
                if self._fan_in.complete:
                    self._conclude(group, envelope)
            case Halt() as halt:
                if self._judging is not None:
                    self._judging.cancel()
                self.port.publish(self._request(self._fan_in, (), halt.stopped_by), cause=envelope)
            case _:
                return

    def _conclude(self, group: asyncio.TaskGroup, cause: Envelope) -> None:
        self._judging = group.create_task(attend(self.port, partial(self._judge, self._fan_in), cause))

    async def _judge(self, fan_in: FanIn, cause: Envelope) -> None:
        criteria = (*fan_in.manifest.task_criteria, *self._uncovered(fan_in))
        output, known = await self._result(fan_in, criteria, cause)
        verdicts = tuple(known[each.text] for each in criteria)
        for verdict in verdicts:
            self.port.publish(CriterionJudged(verdict=verdict), cause=cause)
        if not fan_in.manifest.reply:  # which has done nothing
            self._last = {each.criterion: each for each in reversed(verdicts_of(fan_in.everything, verdicts))}
        if fan_in.failed or any(verdict.verdict == "fail" for verdict in verdicts):
            self.port.publish(self._request(fan_in, verdicts, None, output), cause=cause)
            return
        self.port.publish(
            OutcomeSummary(
                task_id=self.port.task_id,
                merged_output=output,
                summary=output[:400],
                outcomes=fan_in.everything,
                task_verdicts=verdicts,
                shared=fan_in.shared,
            ),
            cause=cause,
        )

    async def _result(self, fan_in: FanIn, criteria: Sequence[Criterion], cause: Envelope) -> tuple[str, _Verdicts]:
        """The answer to the whole, and a verdict on each of its criteria."""
        if fan_in.manifest.reply:
            return fan_in.manifest.reply, await self._reply(fan_in, criteria)
        if fan_in.failed:
            return await self._unfinished(fan_in, criteria)
        single = fan_in.matched[0] if len(fan_in.matched) == 1 else None
        if single is None and all(each.check_decides for each in criteria):
            single = concluding(fan_in)
        if single is not None:
            return single.output, await self._of_one(fan_in, single, criteria, cause)
        asked = [each for each in criteria if not each.check_decides]
        merged = await self._merged(fan_in, asked, cause, await self._waits(fan_in))
        return merged.answer, {**merged.verdicts, **await self._checked(criteria, {}, fan_in, merged.answer)}

    def _uncovered(self, fan_in: FanIn) -> tuple[Criterion, ...]:
        """The request itself, where a part that no criterion speaks of says that its last act failed: whether that
        was all that was wanted of it, nobody else has judged.
        """
        if fan_in.manifest.reply or fan_in.failed or self.asker.known.small:
            return ()
        unread = any(not outcome.done and not outcome.criteria_verdicts for outcome in fan_in.matched)
        known = any(each.text == self._intent for each in fan_in.manifest.task_criteria)
        return of_person(self._intent, ()) if unread and not known else ()

    async def _waits(self, fan_in: FanIn) -> str:
        """What is to be said of the changes of all subtasks together: none of them knows those of the others."""
        calls = (call for outcome in fan_in.everything for call in outcome.tool_calls)
        if not any(call.changed_something for call in calls):
            return ""
        return prepared((await self.surroundings.look(self._intent)).classes, self.unasked)

    async def _unfinished(self, fan_in: FanIn, criteria: Sequence[Criterion]) -> tuple[str, _Verdicts]:
        """What was reached and what that meets; where nothing was, why an executor says that it cannot be done."""
        output, outcomes = merged_output(fan_in.matched or fan_in.hopeless), fan_in.everything
        known = covered(outcomes[0]) if len(outcomes) == 1 else {}
        checks = await self._checked(criteria, known, fan_in, output)
        return output, {**unfinished(criteria, checks), **known}

    async def _reply(self, fan_in: FanIn, criteria: Sequence[Criterion]) -> _Verdicts:
        """Of an answer that does nothing: it may speak of images, of what its author was shown of files (a small
        one is held to look) and of what earlier rounds showed. What the world refused them stays unmet: it ends."""
        reply = fan_in.manifest.reply
        checks = await self._checked(criteria, {}, fan_in, reply)
        seen = self._images if self.asker.known.images else ()
        heads = "" if self.asker.known.small else fan_in.manifest.heads
        told = (self._earlier, heads, *(text for outcome in self._before.values() for text in outcome.texts))
        fact = None if seen else await own_knowledge(reply, (self._intent,), self.source, told=told)
        if fact is not None:
            return {each.text: refuted(each, fact.message) for each in criteria} | checks
        opened = {each.text: of_the_whole(left_open(each, OWN_WORDS)) for each in criteria}
        refused = {text: of_the_whole(each) for text, each in self._last.items() if each.of_world}
        met = {text: opened[text] for text in opened.keys() & self._last if self._last[text].verdict != "fail"}
        return ({**unfinished(criteria, met), **refused} if refused else opened) | checks

    async def _of_one(
        self, fan_in: FanIn, outcome: SubTaskOutcome, criteria: Sequence[Criterion], cause: Envelope
    ) -> _Verdicts:
        """One subtask's output is the answer; criteria that its own loop did not judge are checked, or read."""
        known = covered(outcome)
        known |= await self._checked(criteria, known, fan_in, outcome.output)
        asked = [each for each in criteria if each.text not in known]
        if asked or self.always_ask:
            known |= (await self._merged(fan_in, asked, cause)).verdicts
        return known

    async def _merged(self, fan_in: FanIn, asked: Sequence[Criterion], cause: Envelope, waits: str = "") -> Merged:
        judges = bool(asked) and not self.asker.known.small
        difference = await self.source.difference(DIFFERENCE_SHOWN) if judges else ""
        waits = "\n".join(filter(None, (waits, fan_in.shared_text)))
        return await merge(self.asker, self._intent, fan_in.matched, asked, cause, waits, difference)

    async def _checked(
        self, criteria: Sequence[Criterion], known: _Verdicts, fan_in: FanIn, output: str
    ) -> dict[str, CriterionVerdict]:
        """Those with a check and not `known`."""
        calls = [call for outcome in fan_in.everything for call in outcome.tool_calls]
        left = [each for each in criteria if each.text not in known]
        found = await checked(left, output, calls, self.source, self._intent)
        return {text: of_the_whole(verdict) for text, verdict in found.items()}

    def _request(
        self,
        fan_in: FanIn,
        verdicts: tuple[CriterionVerdict, ...],
        stopped_by: StoppedBy | None,
        output: str | None = None,
    ) -> ReplanRequest:
        outcomes = fan_in.everything
        missed = [verdict for verdict in verdicts if verdict.verdict == "fail"]
        unmet = [verdict.criterion for verdict in missed]
        unmet += [outcome.failure_reason or outcome.intent for outcome in outcomes if outcome.status == "failed"]
        if stopped_by is None and any(outcome.refused for outcome in outcomes):
            stopped_by = StoppedBy.REFUSED_BY_USER
        cannot = fan_in.manifest.reply and all(each.failure_class is not FailureClass.LOGICAL for each in missed)
        if stopped_by is None and ((fan_in.hopeless and not fan_in.may_be_amended) or cannot):
            stopped_by = StoppedBy.MISSING_INPUT
        spent = fan_in.manifest.round > self.max_replans or stopped_by is not None
        return ReplanRequest(
            task_id=self.port.task_id,
            outcomes=outcomes,
            task_verdicts=verdicts,
            not_run=fan_in.not_run,
            corrections=sum(outcome.corrections for outcome in outcomes),
            elapsed_ms=round((self.clock.monotonic() - self._started) * 1_000),
            recommendation="abandon" if spent else "replan",
            stopped_by=stopped_by,
            merged_output=output if output is not None else merged_output(fan_in.matched),
            gap_summary="; ".join(dict.fromkeys(unmet))[:1_000],
            shared=fan_in.shared,
        )
