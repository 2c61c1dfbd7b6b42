"""R4a's verdicts: each has a judge that could give it, and what code decided is decided again."""

from __future__ import annotations

import os
from collections.abc import Iterator

from artoo.auditor.notes import SubTaskNotes, TaskNotes
from artoo.auditor.rules.checks import passed_by_model, passes_said, recheck
from artoo.auditor.rules.rule import Rule, on
from artoo.contracts.criteria import (
    CommandSucceeds,
    Criterion,
    FileExists,
    FileMatches,
    OutputIsJson,
    OutputMatches,
    ToolSucceeded,
)
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import (
    CallStatus,
    CriterionJudged,
    CriterionVerdict,
    DecidedBy,
    ExecutionResult,
    ToolCall,
)
from artoo.contracts.failure import FailureClass
from artoo.contracts.findings import Found
from artoo.contracts.roles import Role


def _criterion(notes: SubTaskNotes, text: str) -> Criterion | None:
    criteria = notes.subtask.success_criteria if notes.subtask is not None else ()
    return next((each for each in criteria if each.text == text), None)


def _judged(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> tuple[SubTaskNotes, CriterionVerdict]:
    """R4a's verdicts only; for R4b's the notes are empty."""
    return task.of(judged.subtask_id), judged.verdict


@on(CriterionJudged)
def verdict_without_result(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> Iterator[str]:
    """A verdict on an attempt that has no result."""
    if envelope.sender is Role.AGENT_VALIDATOR and task.of(judged.subtask_id).result(judged.attempt) is None:
        yield f"attempt {judged.attempt} of subtask {judged.subtask_id} has no result that could be judged"


@on(CriterionJudged)
def passed_by_nobody(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> Iterator[str]:
    """A criterion that passes by a judge that cannot pass it: not by its check, or by a fact: facts refute."""
    notes, verdict = _judged(task, judged, envelope)
    criterion = _criterion(notes, verdict.criterion)
    if criterion is None or verdict.verdict != "pass":
        return
    if criterion.check_decides and criterion.by == "person" and verdict.decided_by is not DecidedBy.CHECK:
        yield f"“{verdict.criterion}” has a check of the person's and passed by {verdict.decided_by}"
    elif not criterion.check_decides and verdict.decided_by is DecidedBy.CHECK:
        yield f"“{verdict.criterion}” has no check that could pass it and passed by one"
    elif verdict.decided_by in (DecidedBy.FACT, DecidedBy.NOBODY):
        yield f"“{verdict.criterion}” passed by {verdict.decided_by}, and that can pass nothing"


@on(CriterionJudged)
def open_and_decided(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> Iterator[str]:
    """A verdict that is open and names who decided it, or that is decided by nobody and is not open."""
    verdict = judged.verdict
    if (verdict.verdict == "open") != (verdict.decided_by is DecidedBy.NOBODY):
        yield f"“{verdict.criterion}” is {verdict.verdict} by {verdict.decided_by}"


@on(CriterionJudged)
def agreement_without_trial(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> Iterator[str]:
    """A criterion that passes by agreement though no second way was run."""
    notes, verdict = _judged(task, judged, envelope)
    if envelope.sender is Role.AGENT_VALIDATOR and verdict.decided_by is DecidedBy.AGREEMENT and not notes.trials:
        yield f"“{verdict.criterion}” passed by agreement, and no second way was run"


@on(CriterionJudged)
def judgement_without_call(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> Iterator[str]:
    """A criterion that passes by a model that was not asked, or that did not say so."""
    notes, verdict = _judged(task, judged, envelope)
    if not passed_by_model(verdict) or notes.subtask is None:
        return
    said = notes.judge_said.get(judged.attempt, ())
    passed = passes_said(said)
    before = sum(map(passed_by_model, notes.judged.get(judged.attempt, ())))
    if not said:
        yield f"“{verdict.criterion}” passed by a model that was not asked in attempt {judged.attempt}"
    elif before + 1 > passed:
        yield f"“{verdict.criterion}” is pass {before + 1} by a model that passed {passed}"


@on(CriterionJudged)
def quote_not_in_evidence(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> Iterator[str]:
    """A criterion that passes on a quote which the evidence does not contain."""
    notes, verdict = _judged(task, judged, envelope)
    said = notes.judge_said.get(judged.attempt, ())
    if not said or not passed_by_model(verdict):
        return
    quote = _folded(verdict.evidence)
    if not any(quote in _folded(shown) for _, shown in said):
        yield f"the quote for “{verdict.criterion}” is not in what the judge was shown: {verdict.evidence[:80]!r}"


def _folded(text: str) -> str:
    return " ".join(text.split()).strip("\"'`").casefold()


@on(CriterionJudged)
def check_disagrees(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> Iterator[str]:
    """A verdict by a check that gives another verdict when it is made again."""
    notes, verdict = _judged(task, judged, envelope)
    criterion, result = _criterion(notes, verdict.criterion), notes.result(judged.attempt)
    if criterion is None or criterion.check is None or result is None or verdict.decided_by is not DecidedBy.CHECK:
        return
    again = recheck(criterion.check, result.output, result.tool_calls)
    if again is not None and again != (verdict.verdict == "pass"):
        yield f"“{verdict.criterion}” is {verdict.verdict} by its check; made again, it {_said(again)}"


def _said(passed: bool) -> str:
    return "passes" if passed else "fails"


@on(CriterionJudged)
def attempts_miscounted(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> Iterator[str]:
    """A verdict whose k of N is not how often its criterion has failed."""
    notes, verdict = _judged(task, judged, envelope)
    if envelope.sender is not Role.AGENT_VALIDATOR:
        return
    earlier = [each for verdicts in notes.judged.values() for each in verdicts]
    failed = sum(each.verdict == "fail" and each.criterion == verdict.criterion for each in earlier)
    failed += verdict.verdict == "fail"
    if (verdict.failed_attempts, verdict.attempts) != (failed, judged.attempt):
        said, real = f"{verdict.failed_attempts} of {verdict.attempts}", f"{failed} of {judged.attempt}"
        yield f"“{verdict.criterion}” failed in {real} attempts, not in {said}"


@on(CriterionJudged)
def wrong_failure_class(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> Iterator[str]:
    """A failure that is blamed on the world when the call itself was wrong, or the other way round."""
    notes, verdict = _judged(task, judged, envelope)
    result = notes.result(judged.attempt)
    if verdict.verdict != "fail" or result is None:
        return
    if verdict.failure_class is None:
        yield f"“{verdict.criterion}” failed without a failure class"
        return
    right = _class_due(_criterion(notes, verdict.criterion), verdict, result)
    if right is not None and verdict.failure_class is not right:
        yield f"“{verdict.criterion}” is called {verdict.failure_class}; what its calls say is {right}"


def _class_due(
    criterion: Criterion | None, verdict: CriterionVerdict, result: ExecutionResult
) -> FailureClass | None:
    """The class as far as the records leave no doubt; None when they do."""
    if result.infrastructure is not None:
        return FailureClass.ENVIRONMENTAL
    blames_the_world = verdict.failure_class is FailureClass.ENVIRONMENTAL
    looked_up = verdict.decided_by in (DecidedBy.FACT, DecidedBy.CHECK)
    if blames_the_world and looked_up and any(_went_wrong(call) for call in result.tool_calls):
        return None
    check = criterion.check if criterion is not None else None
    if verdict.decided_by is DecidedBy.CHECK and isinstance(check, (OutputMatches, OutputIsJson)):
        return FailureClass.LOGICAL
    if (
        verdict.decided_by is DecidedBy.CHECK
        and isinstance(check, FileExists)
        and verdict.reason is not None
        and verdict.reason.found is Found.MISSING
    ):
        return FailureClass.LOGICAL
    if verdict.decided_by is DecidedBy.CHECK and isinstance(check, ToolSucceeded):
        return _class_of_last(check, result)
    if blames_the_world and verdict.decided_by is DecidedBy.FACT:
        return FailureClass.LOGICAL
    return None


def _class_of_last(check: ToolSucceeded, result: ExecutionResult) -> FailureClass | None:
    calls = [call for call in result.tool_calls if check.tool in (None, call.tool, *call.identity)]
    if not calls:
        return FailureClass.LOGICAL
    last = calls[-1]
    if last.status in (CallStatus.TIMEOUT, CallStatus.INTERRUPTED, CallStatus.RUNNING):
        return FailureClass.ENVIRONMENTAL
    return None if last.dropped or last.reason or _speaks_of_the_system(last) else FailureClass.LOGICAL


def _went_wrong(call: ToolCall) -> bool:
    return call.went_wrong or bool(call.dropped) or _speaks_of_the_system(call)


def _speaks_of_the_system(call: ToolCall) -> bool:
    """Whether a call's own record blames the world, or one of the system's error texts stands in what it put out:
    more of them than the validator's.
    """
    if call.failure_class is FailureClass.ENVIRONMENTAL:
        return True
    said = f"{call.output}\n{call.error_output}\n{call.reason or ''}".casefold()
    return any(os.strerror(code).casefold() in said for code in range(1, 134))


_OF_WORDS = (Found.NOWHERE, Found.MISCALCULATED, Found.NOT_LOOKED_UP, Found.NO_CALL)
_OF_WORDS_OR_ORDER = (*_OF_WORDS, Found.WAYS_DIFFER, Found.CONFLICT)
_OF_A_CHECK = (Found.NO_VERDICT, Found.BAD_PATTERN, Found.BAD_SCHEMA)


@on(CriterionJudged)
def failure_of_nobody(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> Iterator[str]:
    """A verdict that blames no tool though it is more than an answer's words, a plan's order, a useless check, or a
    check of R2's where every call ended well.
    """
    notes, verdict = _judged(task, judged, envelope)
    if not verdict.blameless:
        return
    found = verdict.reason.found if verdict.reason is not None else None
    rightly = found in (_OF_WORDS_OR_ORDER if verdict.decided_by is DecidedBy.FACT else _OF_A_CHECK)
    rightly = rightly or (verdict.decided_by is DecidedBy.CHECK and _may_be_the_check(notes, judged))
    by_code = verdict.decided_by in (DecidedBy.FACT, DecidedBy.CHECK)
    if verdict.verdict != "fail" or not by_code or verdict.identities or not rightly:
        yield f"“{verdict.criterion}” is called nobody's failure, and is {verdict.verdict} by {verdict.decided_by}"


def _may_be_the_check(notes: SubTaskNotes, judged: CriterionJudged) -> bool:
    """Whether it is no check of the person's, refuses no call's own output, and no call that ran ended badly. R4b's
    verdicts cite nobody anyhow.
    """
    criterion, result = _criterion(notes, judged.verdict.criterion), notes.result(judged.attempt)
    if criterion is None or result is None:
        return judged.subtask_id is None
    ran = [call for call in result.tool_calls if not call.never_ran]
    of_answer = not isinstance(criterion.check, (FileExists, FileMatches, CommandSucceeds))
    its_own = of_answer and any(call.output.strip() == result.output.strip() for call in ran)
    bad = any(call.went_wrong or call.dropped for call in ran)
    return criterion.by != "person" and not its_own and not bad


RULES: tuple[Rule, ...] = (
    verdict_without_result,
    passed_by_nobody,
    open_and_decided,
    agreement_without_trial,
    judgement_without_call,
    quote_not_in_evidence,
    check_disagrees,
    attempts_miscounted,
    wrong_failure_class,
    failure_of_nobody,
)
