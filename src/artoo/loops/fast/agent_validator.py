"""R4a, sensor and controller of the fast loop: decides each criterion by what is strongest, corrects at most twice.

result ──► given up? ──► checks ──► facts ──► agreement ──► judgement ──► what is left is open
             (the first that decides, decides: SPEC section 3)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from artoo.contracts.criteria import Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import (
    CriterionJudged,
    CriterionVerdict,
    DecidedBy,
    ExecutionResult,
    GapPoint,
    SubTaskOutcome,
    ToolCall,
    assurance_of,
)
from artoo.contracts.findings import Found, Reason
from artoo.contracts.plan import SubTask
from artoo.loops.asking import Asker
from artoo.loops.fast import judging
from artoo.loops.fast.agreement import Agreement, SecondLook, second_way
from artoo.loops.fast.checks import run_check
from artoo.loops.fast.correction import correction_for
from artoo.loops.fast.facts import Fact, broken_act, floating_tokens, own_words_on, rests_on_nothing
from artoo.loops.fast.judgement import CANNOT, DIFFERENCE_SHOWN, judge
from artoo.loops.fast.judging import Judged
from artoo.loops.fast.second_author import SecondAuthor
from artoo.loops.role import listen
from artoo.ports.bus import Port
from artoo.ports.evidence import EvidenceSource
from artoo.ports.surroundings import SurroundingsSource


@dataclass(slots=True)
class _Record:
    """What this validator has seen of its subtask. `asked`: what has been asked for once and is not again."""

    subtask: SubTask
    failures: dict[str, int] = field(default_factory=dict[str, int])
    trajectory: list[GapPoint] = field(default_factory=list[GapPoint])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    asked: set[str] = field(default_factory=set[str])


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
        """`always_ask`: the judge is asked also where nothing is left to it (`--strict-roles`)."""
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
        record.calls.extend(result.attempt_calls)
        judged = await self._judge(record, result, cause)
        counted = (judging.counted(verdict, result.attempt, record.failures) for verdict in judged.verdicts)
        judged = replace(judged, verdicts=tuple(counted))
        if result.stuck or any(call.withheld_by == "person" for call in result.attempt_calls):
            judged = replace(judged, final=True)  # a person's no is not tried again
        for verdict in judged.verdicts:
            self._port.publish(
                CriterionJudged(subtask_id=result.subtask_id, attempt=result.attempt, verdict=verdict), cause=cause
            )
        record.trajectory.append(_gap(result.attempt, judged))
        if judged.failed and not judged.final and result.attempt <= self._max_retries:
            self._port.publish(correction_for(result, judged.failed, judged.advice), cause=cause)
        else:
            self._port.publish(_outcome(record, result, judged), cause=cause)

    async def _judge(self, record: _Record, result: ExecutionResult, cause: Envelope) -> Judged:
        """The order of SPEC section 3; what an earlier step decided, a later one does not touch."""
        criteria = record.subtask.success_criteria
        if result.status == "failed" or result.infrastructure is not None:
            return Judged(tuple(judging.failed_outright(criteria, result)), final=True)
        if result.status == "cannot":
            return await self._judge_cannot(record, result, cause)
        decided = await self._checked(criteria, result)
        fact = broken_act(result) or await self._floating(record, result)
        left = [each for index, each in enumerate(criteria) if index not in decided]
        if fact is not None:
            missed = (judging.missed_by(verdict, fact) for verdict in decided.values())
            verdicts = (*missed, *judging.against(left, fact))
            again = fact.asked_once and not result.small_model and self._second_time(record, "tokens")
            return Judged(verdicts, fact.advice, final=again)
        if any(verdict.verdict == "fail" for verdict in decided.values()):
            reason = "not judged: a check failed"
            return Judged((*decided.values(), *(judging.left_open(each, reason) for each in left)))
        judged = await self._looked_at_twice(record, result, left, cause)
        if judged is None:
            judged = await self._asked(record, result, left, cause)
        if judged.output:  # another answer than the one that was checked
            decided = await self._checked(criteria, result.model_copy(update={"output": judged.output}))
        return replace(judged, verdicts=(*decided.values(), *judged.verdicts))

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

    async def _floating(self, record: _Record, result: ExecutionResult) -> Fact | None:
        subtask = record.subtask
        if subtask.images and self._asker.known.images:
            return None  # a token may stand in a picture, which code cannot read
        request = (subtask.intent, subtask.context, *(each.text for each in subtask.success_criteria))

        async def around() -> str:
            return (await self._surroundings.look(subtask.intent)).listing

        return await floating_tokens(result, request, around, self._source)

    async def _looked_at_twice(
        self, record: _Record, result: ExecutionResult, left: Sequence[Criterion], cause: Envelope
    ) -> Judged | None:
        """What a second way decides; None when none is due, or it leaves the rest to a judge that may be asked.

        A person's own check needs none. A small model's checks of its own work do: they are no better than it.
        """
        wanted = self._second_look.wanted(small_model=result.small_model)
        if not wanted or any(each.by == "person" for each in record.subtask.success_criteria):
            return None
        if rests_on_nothing(result):
            return None
        author = SecondAuthor(self._asker, record.subtask, record.subtask.surroundings, cause)
        found = await second_way(result, record.subtask.intent, author, self._source)
        if found.verdict == "open":
            if left and not result.small_model:
                return None
            return Judged(tuple(judging.left_open(each, found.evidence) for each in left or (None,)))
        if found.verdict == "other" and not found.kept:
            return self._made_otherwise(record, left, found)
        criteria = left or (None,)
        return Judged(tuple(judging.from_agreement(each, found.evidence) for each in criteria), output=found.kept)

    def _made_otherwise(self, record: _Record, left: Sequence[Criterion], found: Agreement) -> Judged:
        """Two other ways make other files: asked for once, then it stands as it is, confirmed by nothing."""
        if self._second_time(record, "ways"):
            return Judged(tuple(judging.left_open(each, found.evidence) for each in left or (None,)))
        differ = Reason(found=Found.WAYS_DIFFER, said=found.evidence)
        against = judging.against(left, Fact(differ, contradicts=False))
        return Judged(tuple(each.model_copy(update={"blameless": True}) for each in against))

    async def _asked(
        self, record: _Record, result: ExecutionResult, left: Sequence[Criterion], cause: Envelope
    ) -> Judged:
        """What a judge decides; a small model's judgement decides nothing, and own knowledge needs no judge."""
        criteria = left or record.subtask.success_criteria
        alone = rests_on_nothing(result)
        judged = None
        if criteria and (self._always_ask or (left and not alone and not result.small_model)):
            difference = await self._source.difference(DIFFERENCE_SHOWN)
            subtask = await self._guided(record, result)
            judged = await judge(self._asker, subtask, criteria, result, difference, cause)
        if judged is None or alone or result.small_model:
            reason = own_words_on(record.subtask.images) if alone else "nothing decided it"
            return Judged(tuple(judging.left_open(each, reason) for each in left))
        return judged if left else Judged(())

    async def _judge_cannot(self, record: _Record, result: ExecutionResult, cause: Envelope) -> Judged:
        """A small model's word ends it, and one before anything was tried; else a judge looks at the tries."""
        fact = Fact(result.output or "it cannot be done", judging.class_of_failure(result), contradicts=False)
        verdicts = tuple(judging.against(record.subtask.success_criteria, fact))
        if result.small_model or rests_on_nothing(result):
            return Judged(verdicts, final=True, hopeless=True)
        difference = await self._source.difference(DIFFERENCE_SHOWN)
        subtask = await self._guided(record, result)
        judged = await judge(self._asker, subtask, (CANNOT,), result, difference, cause)
        if judged.verdicts[0].verdict == "fail":
            return Judged(verdicts, judged.advice or judged.verdicts[0].evidence)
        return Judged(verdicts, final=True, hopeless=True)

    async def _guided(self, record: _Record, result: ExecutionResult) -> SubTask:
        """The subtask with the standing instructions of the places where it has worked."""
        if not any(call.changes for call in result.tool_calls):
            return record.subtask
        seen = await self._surroundings.look(record.subtask.intent)
        return record.subtask.model_copy(update={"guide": seen.guide})

    def _second_time(self, record: _Record, asked: str) -> bool:
        """Whether this has been asked for before in this subtask; it is now."""
        before = asked in record.asked
        record.asked.add(asked)
        return before


def _gap(attempt: int, judged: Judged) -> GapPoint:
    total, failed = len(judged.verdicts), judged.failed
    return GapPoint(
        attempt=attempt,
        score=1.0 if not total else (total - len(failed)) / total,
        unmet_criteria=tuple(verdict.criterion for verdict in failed),
        failure_class=failed[0].failure_class if failed else None,
    )


def _outcome(record: _Record, result: ExecutionResult, judged: Judged) -> SubTaskOutcome:
    failed = judged.failed
    return SubTaskOutcome(
        subtask_id=result.subtask_id,
        parent_task_id=record.subtask.parent_task_id,
        status="failed" if failed else "matched",
        intent=record.subtask.intent,
        output=judged.output or result.output,
        failure_reason=_reason(failed[0]) if failed else None,
        gap_trajectory=tuple(record.trajectory),
        criteria_verdicts=judged.verdicts,
        tool_calls=tuple(record.calls),
        infrastructure=result.infrastructure,
        hopeless=judged.hopeless,
        assurance=assurance_of(judged.verdicts),
        open=tuple(verdict.criterion for verdict in judged.verdicts if verdict.verdict == "open"),
    )


def _reason(verdict: CriterionVerdict) -> str:
    return verdict.evidence if verdict.decided_by is DecidedBy.FACT else f"{verdict.criterion}: {verdict.evidence}"
