"""R4a (validator), which decides each criterion of a subtask and corrects the executor.

It is both the sensor and the controller of the fast loop.

result ──► given up? ──► checks ──► facts ──► agreement ──► judgement ──► the remaining criteria are open
             (an earlier step overrules the later ones: SPEC section 3.6)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from artoo.contracts.criteria import (
    OF_THE_WORLD,
    TWO_WAYS_AGREE,
    CommandSucceeds,
    Criterion,
    FileMatches,
    Mode,
)
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import BudgetExhausted
from artoo.contracts.execution import (
    CriterionJudged,
    CriterionVerdict,
    DecidedBy,
    ExecutionResult,
    GapPoint,
    SubTaskOutcome,
    assurance_of,
)
from artoo.contracts.failure import FailureClass
from artoo.contracts.findings import Found, Reason
from artoo.contracts.plan import SubTask
from artoo.contracts.steering import Sampled, SampleDue
from artoo.evidence.facts import Fact, broken_act, floating_tokens, own_knowledge, rests_on_nothing, told_files
from artoo.evidence.shown_files import named_and_others
from artoo.loops.asking import Asker
from artoo.loops.before_work import BeforeWork
from artoo.loops.fast.agreement import SecondAuthor, SecondLook, second_way
from artoo.loops.fast.judgement import CANNOT, Beside, heads_used, judge
from artoo.loops.prepared import today_is
from artoo.loops.role import listen
from artoo.ports.bus import Port
from artoo.ports.evidence import EvidenceSource
from artoo.ports.surroundings import SurroundingsSource
from artoo.verdicts import judging
from artoo.verdicts.judging import Judged
from artoo.verdicts.quotes import UNSAID
from artoo.verdicts.shown import DIFFERENCE_SHOWN

_WITHOUT = "If it cannot be done without what was withheld, end with cannot."
# An honest report that a resource is missing meets no criterion, so without this hint an executor would go on
# trying to meet the criterion.
_NOT_HERE = "If it cannot be done here, end with cannot."
_DISPUTE = "The planner wrote this check unseen. If the check is wrong, change nothing for it and answer why."
# Checks that look at contents. A file that a failed program left behind does not pass them, although it would pass
# a check that the file exists.
_OF_CONTENTS = (CommandSucceeds, FileMatches)
# The criterion that the comparison of two ways decides if no other criterion is left.
_TWO_WAYS = (Criterion(text=TWO_WAYS_AGREE, mode=Mode.VERIFIABLE),)


@dataclass(slots=True, eq=False)
class AgentValidator:
    """Judges the results of one executor: at most `max_retries` corrections, then the outcome.

    `always_ask`: if true, the judge is asked even if code has already decided every criterion (`--strict-roles`).
    """

    port: Port
    asker: Asker
    source: EvidenceSource
    surroundings: SurroundingsSource
    max_retries: int
    always_ask: bool = False
    second_look: SecondLook = SecondLook.AUTO
    before: BeforeWork = field(default_factory=BeforeWork)
    _subtask: SubTask | None = field(default=None, init=False)
    # Criteria that their checks already found met before the work began.
    _held: frozenset[str] = field(default=frozenset(), init=False)
    _trajectory: list[GapPoint] = field(default_factory=list[GapPoint], init=False)
    _today: str = field(default="", init=False)
    # The subjects of the last correction: tokens, or a call that failed.
    _doubted: frozenset[str] = field(default=frozenset(), init=False)
    # True after a correction for a fact that justifies only one correction.
    _asked: bool = field(default=False, init=False)
    # Criteria of the planner whose failed checks were the subject of the last correction.
    _missed: frozenset[str] = field(default=frozenset(), init=False)
    # number of calls when a judge last blamed the environment without advice
    _lacking: int = field(default=0, init=False)

    async def run(self) -> None:
        """Judge results until the port closes."""
        await listen(self.port, self._handle)

    async def _handle(self, envelope: Envelope) -> None:
        match envelope.payload:
            case SubTask() as subtask:
                self._subtask = subtask
                self._today = "" if self.asker.known.small else today_is(envelope.at)
                # The executor takes its first turn at the same time.
                self._held = await self.before.held(subtask.success_criteria, self.source)
            case SampleDue() as due if self._subtask is not None:
                await self._sample(self._subtask, due, envelope)
            case ExecutionResult() as result if self._subtask is not None:
                await self._judge_attempt(self._subtask, result, envelope)
            case _:
                return

    async def _sample(self, subtask: SubTask, due: SampleDue, cause: Envelope) -> None:
        """Run the checks on the current files, in a throw-away layer, while the executor goes on. Criteria that the
        checks do not decide stay open."""
        criteria = subtask.success_criteria
        of_world = [each for each in criteria if isinstance(each.check, OF_THE_WORLD)]
        found = await judging.checked(of_world, "", due.calls, self.source, _told(subtask), self._held)
        failures = [call.failure_class for call in due.calls if call.went_wrong and not call.never_ran]
        sampled = Sampled(
            subtask_id=due.subtask_id,
            attempt=due.attempt,
            turn=due.turn,
            verdicts=tuple(found.get(each.text) or judging.left_open(each, "not judged yet") for each in criteria),
            logical=failures.count(FailureClass.LOGICAL),
            environmental=failures.count(FailureClass.ENVIRONMENTAL),
        )
        self.port.publish(sampled, cause=cause)

    async def _judge_attempt(self, subtask: SubTask, result: ExecutionResult, cause: Envelope) -> None:
        # with the listing of files that its executor was shown
        subtask = subtask.model_copy(update=dict(result.glance or ()))
        files = await told_files(result, _told(subtask), self.source)
        judged = await self._judge(subtask, result, ", ".join(files[0]), cause)
        verdicts = (judging.counted(verdict, result.attempt, self._trajectory) for verdict in judged.verdicts)
        judged = replace(judged, verdicts=tuple(verdicts))
        for verdict in judged.verdicts:
            told = CriterionJudged(subtask_id=result.subtask_id, attempt=result.attempt, verdict=verdict)
            self.port.publish(told, cause=cause)
        self._trajectory.append(_gap(result.attempt, judged))
        # There is no further attempt after the user has refused something.
        last = judged.final or result.stuck or any(call.withheld_by == "person" for call in result.attempt_calls)
        if judged.failed and not last and result.attempt <= self.max_retries:
            self.port.publish(judging.correction_for(result, judged.failed, judged.advice), cause=cause)
        else:
            outcome = _outcome(subtask, result, judged, self._trajectory)
            beside = {"absent": tuple(files[0]), "empty": tuple(files[1])}
            self.port.publish(outcome.model_copy(update=beside), cause=cause)

    async def _judge(self, subtask: SubTask, result: ExecutionResult, absent: str, cause: Envelope) -> Judged:
        """Judge in the order of SPEC section 3.6. A later step does not change the decision of an earlier one."""
        criteria = subtask.success_criteria
        if result.status == "failed" or result.infrastructure is not None:
            return Judged(judging.failed_outright(criteria, result), final=True)
        if result.status == "cannot":
            return await self._judge_cannot(subtask, result, cause)
        found = await self._checked(criteria, subtask, result)
        decided = [each for each in found.values() if each.verdict != "open"]
        left = [each for each in criteria if each.text not in {verdict.criterion for verdict in decided}]
        request = (_told(subtask), *(each.text for each in criteria))
        failed = any(verdict.verdict == "fail" for verdict in decided)
        beside, broken = Beside(absent=absent), broken_act(result, request)
        if broken is not None and not failed and _is_outweighed(broken, result, criteria, decided):
            beside, broken = replace(beside, doubt=broken.text), None
        tells_of_look = broken is not None and broken.of_look and not result.small_model
        fact = broken
        if (
            broken is None or tells_of_look
        ):  # a failed search may be the answer, but a number that no output contains may not
            fact = await self._floating(subtask, result) or broken
        if fact is not None:
            again, stands = fact.asked_once and not result.small_model and self._asked, None
            self._asked = self._asked or fact.asked_once
            # the correction raised no new doubt, and the executor repeats its answer
            stood_by = again and fact.doubts <= self._doubted
            if not failed and (stood_by or (fact.of_look and tells_of_look)):
                stands = await self._stood_by(subtask, result, left, fact, beside, cause)
            self._doubted = fact.doubts
            if stands is None:
                return Judged(judging.refuted(decided, left, fact, result.tool_calls), fact.advice, final=again)
            judged = stands
        elif failed:
            of_check = [verdict for verdict in decided if verdict.verdict == "fail"]
            # no work of the executor can make these checks pass
            useless = all(judging.of_nobody(verdict.reason) for verdict in of_check)
            withheld = any(call.withheld_by is not None for call in result.tool_calls)
            disputed = self._is_disputed(criteria, of_check, result)
            advice = _WITHOUT if withheld else _DISPUTE if self._missed else ""
            judged = replace(
                Judged.open(left, "not judged: a check failed"), final=useless or disputed, advice=advice
            )
        else:
            judged = await self._looked_at_twice(subtask, result, left, beside, cause)
            judged = judged or await self._asked_about(subtask, result, left, beside, cause)
        rest = tuple(
            found.get(each.criterion, each) if each.verdict == "open" else each for each in judged.verdicts
        )
        return replace(judged, verdicts=(*decided, *rest))

    def _is_disputed(
        self, criteria: Sequence[Criterion], failed: Sequence[CriterionVerdict], result: ExecutionResult
    ) -> bool:
        """Return whether the executor stands by its work. This is so if a correction named the failing checks, all
        of them are the planner's, and nothing was changed since (or no call was made at all, if the checks look at
        the answer). The executor's answer then counts as its reason, and the planner may replace the checks.
        """
        texts = frozenset(verdict.criterion for verdict in failed)
        missed = [each for each in criteria if each.text in texts]
        own = all(each.by == "planner" for each in missed)
        looks = all(isinstance(each.check, OF_THE_WORLD) for each in missed)
        idle = not any(call.changed_something or not looks for call in result.attempt_calls)
        again = own and idle and texts <= self._missed
        self._missed = texts if own and not result.small_model else frozenset()
        return again

    async def _checked(
        self, criteria: Sequence[Criterion], subtask: SubTask, result: ExecutionResult
    ) -> dict[str, CriterionVerdict]:
        return await judging.checked(
            criteria, result.output, result.tool_calls, self.source, _told(subtask), self._held
        )

    async def _floating(self, subtask: SubTask, result: ExecutionResult) -> Fact | None:
        if subtask.images and self.asker.known.images:
            return None  # an image may show the token, and code cannot read images
        request = [subtask.intent, *(each.text for each in subtask.success_criteria), *subtask.said]
        told, unnamed = list[str](), ""
        # a small model must read the files with a tool; the parts in its prompt do not count
        if not self.asker.known.small:
            texts = (_told(subtask), *request, result.output)
            heads, unnamed = named_and_others(subtask.heads, texts, result.tool_calls)
            told = [self._today, heads]
        # the contents of files that other parts were given do not support a part's answer
        (told if subtask.part else request).append(subtask.given)

        async def around() -> str:
            return (await self.surroundings.look(subtask.intent)).listing

        if not result.tool_calls:
            return await own_knowledge(result.output, request, self.source, told, unnamed)
        return await floating_tokens(result, (*request, *told), around, self.source, unnamed)

    async def _stood_by(
        self,
        subtask: SubTask,
        result: ExecutionResult,
        left: Sequence[Criterion],
        fact: Fact,
        beside: Beside,
        cause: Envelope,
    ) -> Judged | None:
        """Judge a doubted statement that a capable model has repeated after the correction. The statement may be
        right although code finds no evidence: the source may say "half past three" in words, or the answer may
        itself report the failure. If a judge passes the statement, it is shown to the user as an open criterion.

        Returns None if the doubt remains.
        """
        beside = replace(beside, doubt="; ".join(filter(None, (beside.doubt, fact.text))))
        judged = await self._ask_judge(subtask, result, (*left, judging.LAW_0), cause, beside)
        if judged.verdicts[-1].verdict != "pass":
            return None
        return replace(judged, verdicts=(*judged.verdicts[:-1], judging.left_open(judging.LAW_0, fact.message)))

    async def _looked_at_twice(
        self, subtask: SubTask, result: ExecutionResult, left: Sequence[Criterion], beside: Beside, cause: Envelope
    ) -> Judged | None:
        """Decide the criteria in `left` by comparing the result with a second way. Returns None if no second way is
        needed, or if it gave no result and a judge may decide these criteria.

        A user's own check makes a second way unnecessary. A small model's checks of its own work do not, because
        they are no more reliable than the work.
        """
        wanted = self.second_look.wanted(small_model=result.small_model)
        persons = any(each.by == "person" for each in subtask.success_criteria)
        if not wanted or persons or rests_on_nothing(result.tool_calls):
            return None
        try:
            found = await second_way(result, subtask.intent, SecondAuthor(self.asker, subtask, cause), self.source)
        except BudgetExhausted as error:
            return Judged.open(left or _TWO_WAYS, judging.no_budget(error))
        if found.verdict == "agreed":
            return Judged(
                tuple(
                    judging.verdict_on(each, "pass", found.evidence, DecidedBy.AGREEMENT)
                    for each in left or _TWO_WAYS
                )
            )
        if found.verdict == "open":
            return None if left and not result.small_model else Judged.open(left or _TWO_WAYS, found.evidence)
        differ = Reason(found=Found.WAYS_DIFFER, said=found.evidence)
        if not left or result.small_model:
            return Judged.open(left or _TWO_WAYS, differ)
        judged = await self._asked_about(subtask, result, left, beside, cause)
        return replace(judged, verdicts=(*judged.verdicts, *Judged.open(_TWO_WAYS, differ).verdicts))

    async def _asked_about(
        self, subtask: SubTask, result: ExecutionResult, left: Sequence[Criterion], beside: Beside, cause: Envelope
    ) -> Judged:
        """Ask a judge about the criteria that code has not decided. A small model's judgement decides nothing, and
        an answer that rests on no call is not judged."""
        criteria = left or subtask.success_criteria
        alone = rests_on_nothing(result.tool_calls)
        idle = alone or result.small_model
        judged = Judged(())
        if criteria and (self.always_ask or (left and not idle)):
            judged = await self._ask_judge(subtask, result, criteria, cause, beside)
        if judged.failed and all(verdict.of_world for verdict in judged.failed):
            self._lacking = 0 if judged.advice else len(result.tool_calls)
            judged = replace(judged, advice=f"{judged.advice} {_NOT_HERE}".strip())
        if idle:
            if alone and not criteria:  # a part without calls of a task with several parts; no judge can verify it
                left = (Criterion(text=subtask.intent, mode=Mode.PLAUSIBLE),)
            return Judged.open(left, judging.OWN_WORDS if alone else "nothing decided it")
        return judged if left else Judged(())

    async def _judge_cannot(self, subtask: SubTask, result: ExecutionResult, cause: Envelope) -> Judged:
        """Judge a result that reports that the subtask cannot be done (`cannot`). It is accepted without a judge if
        it comes from a small model, if nothing was tried, after a user's refusal, or if an earlier judge had no
        advice. Otherwise a judge decides whether the attempts justify it.

        Criteria whose checks pass nevertheless keep that verdict. The verdicts on failing checks contain the
        executor's reason, because the planner may replace a check that cannot pass. The result remains `cannot`
        even if all checks pass.
        """
        fact = Fact(result.output or "it cannot be done", judging.class_of_failure(result), contradicts=False)
        criteria = subtask.success_criteria
        of_world = [each for each in criteria if isinstance(each.check, OF_THE_WORLD)]
        checks = await self._checked(of_world, subtask, result)
        held = {text: each for text, each in checks.items() if judging.held(each)}
        found = {text: each for text, each in checks.items() if each.verdict != "open"} | held
        left = [each for each in criteria if each.text not in found]
        verdicts = judging.given_up(tuple(found.values()), left, fact)
        calls = result.tool_calls
        known = len(calls) == self._lacking or any(call.withheld_by == "person" for call in calls)
        if not (result.small_model or known or rests_on_nothing(result.tool_calls)):
            missed = tuple(verdict for verdict in found.values() if verdict.verdict == "fail")
            judged = await self._ask_judge(subtask, result, (CANNOT,), cause, Beside(failed=missed))
            if judged.failed:
                if (why := judged.failed[0].evidence) != UNSAID:
                    verdicts = judging.given_up(tuple(found.values()), left, replace(fact, message=why))
                return Judged(verdicts, judged.advice)
        return Judged(verdicts, final=True, hopeless=True)

    async def _ask_judge(
        self,
        subtask: SubTask,
        result: ExecutionResult,
        criteria: Sequence[Criterion],
        cause: Envelope,
        beside: Beside,
    ) -> Judged:
        """Ask the judge. It is shown the standing instructions of the directories in which the subtask has
        worked."""
        difference, earlier = await self.source.difference(DIFFERENCE_SHOWN), ""
        if subtask.begun or any(call.changed_something for call in result.tool_calls):
            seen = await self.surroundings.look(subtask.intent)
            subtask, earlier = subtask.model_copy(update={"guide": seen.guide}), seen.earlier
        beside = replace(beside, today=self._today, earlier=earlier)
        return await judge(self.asker, subtask, criteria, result, difference, cause, beside)


def _is_outweighed(
    fact: Fact, result: ExecutionResult, criteria: Sequence[Criterion], decided: Sequence[CriterionVerdict]
) -> bool:
    """Return whether a passed check of file contents outweighs a call that ended badly, because the exit code may
    come from a later command of the same line. A passed check that a file exists does not outweigh the call,
    because a failed program may leave a file behind.
    """
    passed = {verdict.criterion for verdict in decided if verdict.verdict == "pass"}
    holds = any(each.text in passed and isinstance(each.check, _OF_CONTENTS) for each in criteria)
    return holds and fact.contradicts and fact.asked_once and not result.small_model


def _told(subtask: SubTask) -> str:
    """Return the texts that a subtask was given: its intent, and the request with the results of earlier parts."""
    return f"{subtask.intent}\n{subtask.given}"


def _gap(attempt: int, judged: Judged) -> GapPoint:
    total, failed = len(judged.verdicts), judged.failed
    return GapPoint(
        attempt=attempt,
        score=1.0 if not total else (total - len(failed)) / total,
        unmet_criteria=tuple(verdict.criterion for verdict in failed),
        failure_class=failed[0].failure_class if failed else None,
    )


def _outcome(
    subtask: SubTask, result: ExecutionResult, judged: Judged, trajectory: Sequence[GapPoint]
) -> SubTaskOutcome:
    failed = judged.failed
    return SubTaskOutcome(
        subtask_id=result.subtask_id,
        parent_task_id=subtask.parent_task_id,
        status="failed" if failed else "matched",
        intent=subtask.intent,
        output=result.output,
        failure_reason=judging.reason_of(failed[0]) if failed else None,
        gap_trajectory=tuple(trajectory),
        criteria_verdicts=judged.verdicts,
        tool_calls=result.tool_calls,
        heard=result.heard,
        infrastructure=result.infrastructure,
        hopeless=judged.hopeless,
        heads=heads_used(subtask, result),
        assurance=assurance_of(judged.verdicts),
        open=tuple(verdict.criterion for verdict in judged.verdicts if verdict.verdict == "open"),
    )
