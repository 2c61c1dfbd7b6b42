"""R4b (meta-validator), which collects the outcomes of a round, merges them, and reports gaps to the solver.

It is the sensor of the medium loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from artoo.contracts.criteria import Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CriterionJudged, CriterionVerdict, ExecutionResult, SubTaskOutcome
from artoo.contracts.failure import FailureClass
from artoo.contracts.plan import DispatchManifest, Joined
from artoo.contracts.request import AttachedImage, TaskSpec
from artoo.contracts.settling import ApplyMode, ChangeClass
from artoo.contracts.solution import Halt, OutcomeSummary, ReplanRequest, StoppedBy
from artoo.evidence.facts import own_knowledge
from artoo.evidence.shown_files import named_and_others
from artoo.loops.asking import Asker
from artoo.loops.before_work import BeforeWork
from artoo.loops.medium.fan_in import (
    FanIn,
    concluding,
    covered,
    merged_output,
    of_the_whole,
    refuted,
    unfinished,
    with_reply,
)
from artoo.loops.medium.merging import Merged, merge
from artoo.loops.medium.plan_draft import of_person
from artoo.loops.medium.trajectory import verdicts_of
from artoo.loops.prepared import earlier, prepared
from artoo.loops.role import attend, listen
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.evidence import EvidenceSource
from artoo.ports.surroundings import SurroundingsSource
from artoo.verdicts.judging import OWN_WORDS, checked, left_open
from artoo.verdicts.shown import DIFFERENCE_SHOWN

# Verdicts on criteria of the whole task, by their text.
_Verdicts = Mapping[str, CriterionVerdict]


@dataclass(slots=True, eq=False)
class MetaValidator:
    """Answers each round once. The solver gets an OutcomeSummary if no criterion failed, else a ReplanRequest."""

    port: Port
    asker: Asker
    source: EvidenceSource
    surroundings: SurroundingsSource
    clock: Clock
    max_replans: int
    always_ask: bool = False
    unasked: frozenset[ChangeClass] = ApplyMode.NEW.unasked
    before: BeforeWork = field(default_factory=BeforeWork)
    _intent: str = field(default="", init=False)
    _earlier: str = field(default="", init=False)
    _images: tuple[AttachedImage, ...] = field(default=(), init=False)
    _before: dict[str, SubTaskOutcome] = field(default_factory=dict[str, SubTaskOutcome], init=False)
    _last: dict[str, CriterionVerdict] = field(default_factory=dict[str, CriterionVerdict], init=False)
    # Texts of criteria that only subtasks have, and not the whole task.
    _of_parts: set[str] = field(default_factory=set[str], init=False)
    _started: float = field(init=False)
    _fan_in: FanIn = field(init=False)
    _judging: asyncio.Task[None] | None = field(default=None, init=False)
    # Criteria that their checks already found met before the work began.
    _held: asyncio.Task[frozenset[str]] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._started = self.clock.monotonic()
        self._fan_in = FanIn(DispatchManifest(task_id=self.port.task_id, round=1, subtasks=()))

    async def run(self) -> None:
        """Listen until the port closes.

        Judging runs in parallel with the inbox, so that a Halt is answered while a model is still working.
        """
        async with asyncio.TaskGroup() as group:
            await listen(self.port, partial(self._handle, group))
            for task in (self._judging, self._held):
                if task is not None:
                    task.cancel()

    async def _handle(self, group: asyncio.TaskGroup, envelope: Envelope) -> None:
        match envelope.payload:
            case TaskSpec() as spec:
                self._intent, self._images, self._earlier = spec.intent, spec.images, earlier(spec)
                self._started = self.clock.monotonic()
            case DispatchManifest() as manifest:
                self._before |= {outcome.subtask_id: outcome for outcome in self._fan_in.everything}
                carried = tuple(self._before[key] for key in manifest.carried if key in self._before)
                self._fan_in = FanIn(manifest, carried)
                of_subtasks = {each.text for entry in manifest.subtasks for each in entry.success_criteria}
                self._of_parts |= of_subtasks - {each.text for each in manifest.task_criteria}
                if self._held is None and manifest.subtasks:
                    self._held = group.create_task(self.before.held(manifest.task_criteria, self.source))
                if manifest.reply:
                    self._conclude(group, envelope)
                elif manifest.question:
                    self._stop(StoppedBy.QUESTION, envelope, manifest.question)
            case ExecutionResult() as result:
                self._fan_in.answered(result)
            case SubTaskOutcome() as outcome:
                self._fan_in.add(outcome)
            case Joined() as joined:
                self._fan_in.join(joined)
                if self._fan_in.complete:
                    self._conclude(group, envelope)
            case Halt() as halt:
                if self._judging is not None:
                    self._judging.cancel()
                self._stop(halt.stopped_by, envelope)
            case _:
                return

    def _stop(self, why: StoppedBy, cause: Envelope, output: str | None = None) -> None:
        """Answer for a round that is stopped before the meta-validator judges it. Criteria that an earlier round
        left unmet remain unmet."""
        verdicts = tuple(self._still_unmet(self._of_the_whole(self._fan_in)).values())
        for verdict in verdicts:
            self.port.publish(CriterionJudged(verdict=verdict), cause=cause)
        request = self._request(self._fan_in, verdicts, why, output)
        if output is None and self._fan_in.unjudged:
            # The answer was complete when the task was stopped, so it is delivered and marked as not judged.
            request = request.model_copy(update={"merged_output": self._fan_in.reached, "unjudged": True})
        self.port.publish(request, cause=cause)

    def _still_unmet(self, criteria: Sequence[Criterion]) -> dict[str, CriterionVerdict]:
        """Return the failing verdicts of earlier rounds on these criteria.

        No attempt of this round has missed these criteria again, so they count in D (distance) but not in P
        (implausibility).
        """
        failed = (self._last[each.text] for each in criteria if each.text in self._last)
        unmet = (of_the_whole(verdict) for verdict in failed if verdict.verdict == "fail")
        return {each.criterion: each.model_copy(update={"failure_class": None}) for each in unmet}

    def _conclude(self, group: asyncio.TaskGroup, cause: Envelope) -> None:
        self._judging = group.create_task(attend(self.port, partial(self._judge, self._fan_in), cause))

    async def _judge(self, fan_in: FanIn, cause: Envelope) -> None:
        criteria = (*self._of_the_whole(fan_in), *self._uncovered(fan_in))
        output, known = await self._result(fan_in, criteria, cause)
        verdicts = tuple(known[each.text] for each in criteria)
        for verdict in verdicts:
            self.port.publish(CriterionJudged(verdict=verdict), cause=cause)
        if not fan_in.manifest.reply:  # a reply does no work, so the earlier verdicts remain
            judged = {each.criterion: each for each in reversed(verdicts_of(fan_in.everything, verdicts))}
            self._last = unfinished(fan_in.never_judged, {}) | judged
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

    def _of_the_whole(self, fan_in: FanIn) -> list[Criterion]:
        """Return the task criteria that are judged on the answer of the whole task.

        A criterion that comes from a subtask, and that a subtask of this round has again, is judged only there and
        counts once.
        """
        judged = {each.criterion for each in verdicts_of(fan_in.everything, ())} & self._of_parts
        return [each for each in fan_in.manifest.task_criteria if each.text not in judged]

    async def _result(self, fan_in: FanIn, criteria: Sequence[Criterion], cause: Envelope) -> tuple[str, _Verdicts]:
        """Return the answer of the whole task, and a verdict on each of its criteria."""
        if fan_in.manifest.reply:
            return with_reply(fan_in.matched, fan_in.manifest.reply), await self._reply(fan_in, criteria)
        if fan_in.failed:
            return await self._unfinished(fan_in, criteria)
        single = fan_in.matched[0] if len(fan_in.matched) == 1 else None
        if single is None and all(each.check_decides for each in criteria):
            single = concluding(fan_in)
        if single is not None:
            return single.output, await self._of_one(fan_in, single, criteria, cause)
        held = await self._held if self._held is not None else ()
        asked = [each for each in criteria if not each.check_decides or each.text in held]
        merged = await self._merged(fan_in, asked, cause, await self._waits(fan_in))
        checks = await self._checked(criteria, {}, fan_in, merged.answer)
        return merged.answer, {**checks, **merged.verdicts, **_decided(checks)}

    def _uncovered(self, fan_in: FanIn) -> tuple[Criterion, ...]:
        """Return the request itself as a criterion, if the last call of a subtask without criteria failed. No other
        role has judged whether that subtask did its work.
        """
        if fan_in.manifest.reply or fan_in.failed or self.asker.known.small:
            return ()
        unread = any(not outcome.done and not outcome.criteria_verdicts for outcome in fan_in.matched)
        known = any(each.text == self._intent for each in fan_in.manifest.task_criteria)
        return of_person(self._intent, ()) if unread and not known else ()

    async def _waits(self, fan_in: FanIn) -> str:
        """Describe the pending changes of all subtasks together, because no subtask knows the changes of the
        others."""
        calls = (call for outcome in fan_in.everything for call in outcome.tool_calls)
        if not any(call.changed_something for call in calls):
            return ""
        return prepared((await self.surroundings.look(self._intent)).classes, self.unasked)

    async def _unfinished(self, fan_in: FanIn, criteria: Sequence[Criterion]) -> tuple[str, _Verdicts]:
        """Return the matched outputs of an unfinished round, and verdicts on the criteria. Without a matched
        output, return the executors' reasons why the task cannot be done.
        """
        output, outcomes = merged_output(fan_in.matched or fan_in.hopeless), fan_in.everything
        known = covered(outcomes[0]) if len(outcomes) == 1 else {}
        checks = await self._checked(criteria, known, fan_in, output)
        return output, {**unfinished(criteria, _decided(checks)), **known}

    async def _reply(self, fan_in: FanIn, criteria: Sequence[Criterion]) -> _Verdicts:
        """Judge a reply, which the planner wrote without any calls. A reply may use images, the parts of files in
        the prompt (unless a small model wrote it) and the texts of earlier rounds. Criteria that earlier rounds
        left unmet remain unmet, unless their check passes now.
        """
        reply = fan_in.manifest.reply
        checks = await self._checked(criteria, {}, fan_in, with_reply(fan_in.matched, reply))
        seen = self._images if self.asker.known.images else ()
        heads = "" if self.asker.known.small else fan_in.manifest.heads
        heads, unnamed = named_and_others(heads, (self._intent, reply))
        told = (self._earlier, heads, *(text for outcome in self._before.values() for text in outcome.texts))
        fact = None if seen else await own_knowledge(reply, (self._intent,), self.source, told, unnamed)
        if fact is not None:
            return {each.text: refuted(each, fact.message) for each in criteria} | _decided(checks)
        unmet = self._still_unmet([each for each in criteria if each.amended is None])
        checks = {text: each for text, each in checks.items() if text not in unmet or each.verdict == "pass"}
        return {each.text: of_the_whole(left_open(each, OWN_WORDS)) for each in criteria} | unmet | checks

    async def _of_one(
        self, fan_in: FanIn, outcome: SubTaskOutcome, criteria: Sequence[Criterion], cause: Envelope
    ) -> _Verdicts:
        """Judge the output of a single subtask as the answer of the whole task. Criteria that the subtask's own
        validator did not judge are checked, or judged by a model.
        """
        known = covered(outcome)
        checks = await self._checked(criteria, known, fan_in, outcome.output)
        known |= checks
        undecided = checks.keys() - _decided(checks)
        asked = [each for each in criteria if each.text not in known or each.text in undecided]
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
        """Run the checks of the criteria that are not `known`."""
        calls = [call for outcome in fan_in.everything for call in outcome.tool_calls]
        left = [each for each in criteria if each.text not in known]
        held = await self._held if self._held is not None else ()
        found = await checked(left, output, calls, self.source, self._intent, held)
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
            not_run=len(fan_in.never_judged),
            corrections=sum(outcome.corrections for outcome in outcomes),
            elapsed_ms=round((self.clock.monotonic() - self._started) * 1_000),
            recommendation="abandon" if spent else "replan",
            stopped_by=stopped_by,
            merged_output=output if output is not None else merged_output(fan_in.matched),
            gap_summary="; ".join(dict.fromkeys(unmet))[:1_000],
            shared=fan_in.shared,
        )


def _decided(checks: _Verdicts) -> dict[str, CriterionVerdict]:
    """Return the verdicts that a check decided."""
    return {text: each for text, each in checks.items() if each.verdict != "open"}
