"""R4a: every verdict has a judge, every criterion a verdict, every outcome follows from its verdicts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence

from artoo.auditor.notes import SubTaskNotes, TaskNotes
from artoo.auditor.rules.checks import recheck
from artoo.auditor.rules.rule import Rule, on
from artoo.contracts.criteria import Assurance, Criterion, FileExists, OutputIsJson, OutputMatches, ToolSucceeded
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import (
    CallStatus,
    CorrectionSignal,
    CriterionJudged,
    CriterionVerdict,
    DecidedBy,
    ExecutionResult,
    FailureClass,
    SubTaskOutcome,
    ToolCall,
)
from artoo.contracts.roles import Role

_PASS = re.compile(r"\"verdict\"\s*:\s*\"pass\"")


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
    if criterion.check is not None and verdict.decided_by is not DecidedBy.CHECK:
        yield f"“{verdict.criterion}” has a check and passed by {verdict.decided_by}"
    elif criterion.check is None and verdict.decided_by is DecidedBy.CHECK:
        yield f"“{verdict.criterion}” has no check and passed by one"
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
    if verdict.decided_by is not DecidedBy.JUDGEMENT or verdict.verdict != "pass" or notes.subtask is None:
        return
    said = notes.judge_said.get(judged.attempt, ())
    passed = sum(len(_PASS.findall(answer)) for answer, _ in said)
    before = sum(_by_model(each) for each in notes.judged.get(judged.attempt, ()))
    if not said:
        yield f"“{verdict.criterion}” passed by a model that was not asked in attempt {judged.attempt}"
    elif before + 1 > passed:
        yield f"“{verdict.criterion}” is pass {before + 1} by a model that passed {passed}"


def _by_model(verdict: CriterionVerdict) -> bool:
    return verdict.decided_by is DecidedBy.JUDGEMENT and verdict.verdict == "pass"


@on(CriterionJudged)
def quote_not_in_evidence(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> Iterator[str]:
    """A criterion that passes on a quote which the evidence does not contain."""
    notes, verdict = _judged(task, judged, envelope)
    said = notes.judge_said.get(judged.attempt, ())
    if not said or not _by_model(verdict):
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
    check = criterion.check if criterion is not None else None
    if verdict.decided_by is DecidedBy.CHECK and isinstance(check, (OutputMatches, OutputIsJson)):
        return FailureClass.LOGICAL
    if (
        verdict.decided_by is DecidedBy.CHECK
        and isinstance(check, FileExists)
        and "does not exist" in verdict.evidence
    ):
        return FailureClass.LOGICAL
    if verdict.decided_by is DecidedBy.CHECK and isinstance(check, ToolSucceeded):
        return _class_of_last(check, result)
    if verdict.decided_by is DecidedBy.FACT and verdict.failure_class is FailureClass.ENVIRONMENTAL:
        return None if any(_went_wrong(call) for call in result.tool_calls) else FailureClass.LOGICAL
    return None


def _class_of_last(check: ToolSucceeded, result: ExecutionResult) -> FailureClass | None:
    calls = [call for call in result.tool_calls if check.tool in (None, call.tool, *call.identity)]
    if not calls:
        return FailureClass.LOGICAL
    last = calls[-1]
    if last.status in (CallStatus.TIMEOUT, CallStatus.INTERRUPTED):
        return FailureClass.ENVIRONMENTAL
    return None if last.dropped or last.reason or _speaks_of_the_system(last) else FailureClass.LOGICAL


def _went_wrong(call: ToolCall) -> bool:
    return call.status is not CallStatus.OK or bool(call.dropped) or _speaks_of_the_system(call)


def _speaks_of_the_system(call: ToolCall) -> bool:
    """Whether one of the system's error texts stands in what a call put out; more of them than the validator's."""
    said = f"{call.output}\n{call.error_output}\n{call.reason or ''}".casefold()
    return "error" in said or any(os.strerror(code).casefold() in said for code in range(1, 134))


@on(CriterionJudged)
def failure_of_nobody(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> Iterator[str]:
    """A verdict that blames no tool though it is more than something that is not confirmed yet."""
    notes, verdict = _judged(task, judged, envelope)
    if not verdict.blameless:
        return
    if verdict.verdict == "pass" or verdict.decided_by is not DecidedBy.FACT or verdict.identities:
        yield f"“{verdict.criterion}” is called nobody's failure, and is {verdict.verdict} by {verdict.decided_by}"
    elif verdict.contradicted or _criterion(notes, verdict.criterion) is not None:
        yield f"“{verdict.criterion}” is called nobody's failure, and the subtask was to meet it"


@on(CorrectionSignal)
def correction_without_failure(task: TaskNotes, signal: CorrectionSignal, envelope: Envelope) -> Iterator[str]:
    """A correction of an attempt in which no criterion failed."""
    verdicts = task.of(signal.subtask_id).judged.get(signal.attempt, ())
    failing = [verdict for verdict in verdicts if verdict.verdict == "fail"]
    if not failing:
        yield f"attempt {signal.attempt} is corrected, and none of its verdicts fails"
    elif signal.failed_criterion not in [verdict.criterion for verdict in failing]:
        yield f"attempt {signal.attempt} is corrected for “{signal.failed_criterion}”, which did not fail"


@on(CorrectionSignal)
def too_many_corrections(task: TaskNotes, signal: CorrectionSignal, envelope: Envelope) -> Iterator[str]:
    """More corrections of a subtask than are allowed."""
    corrections = len(task.of(signal.subtask_id).corrections) + 1
    if corrections > task.law.max_retries:
        yield f"correction {corrections} of a subtask that may have {task.law.max_retries}"


@on(CorrectionSignal)
def retried_infrastructure(task: TaskNotes, signal: CorrectionSignal, envelope: Envelope) -> Iterator[str]:
    """A correction of what no retry can mend: the executor has given up, or the infrastructure has failed."""
    result = task.of(signal.subtask_id).result(signal.attempt)
    if result is not None and (result.status == "failed" or result.infrastructure is not None):
        yield f"attempt {signal.attempt} ended as {result.infrastructure or result.status} and is tried again"


@on(CorrectionSignal)
def retried_refusal(task: TaskNotes, signal: CorrectionSignal, envelope: Envelope) -> Iterator[str]:
    """A correction after a person's no: that is not tried again."""
    result = task.of(signal.subtask_id).result(signal.attempt)
    if result is not None and any(call.withheld_by == "person" for call in result.attempt_calls):
        yield "a person said no to a call of this attempt, and it is tried again"


@on(CorrectionSignal)
def correction_class_differs(task: TaskNotes, signal: CorrectionSignal, envelope: Envelope) -> Iterator[str]:
    """A correction whose failure class is not that of the verdicts that failed."""
    verdicts = task.of(signal.subtask_id).judged.get(signal.attempt, ())
    failing = [verdict for verdict in verdicts if verdict.verdict == "fail"]
    environmental = sum(verdict.failure_class is FailureClass.ENVIRONMENTAL for verdict in failing)
    due = FailureClass.ENVIRONMENTAL if environmental * 2 > len(failing) else FailureClass.LOGICAL
    if failing and signal.failure_class is not due:
        yield f"the correction is called {signal.failure_class}; most of what failed is {due}"


@on(SubTaskOutcome)
def outcome_without_verdicts(task: TaskNotes, outcome: SubTaskOutcome, envelope: Envelope) -> Iterator[str]:
    """A subtask that counts as matched though nothing was executed, or a criterion of it was not judged."""
    notes = task.of(outcome.subtask_id)
    if outcome.status != "matched" or notes.subtask is None:
        return
    if not notes.results:
        yield "the subtask counts as matched without any ExecutionResult"
        return
    missing = _unjudged(notes, outcome)
    if missing:
        yield f"the subtask counts as matched, and nobody passed: {_quoted(missing)}"


def _unjudged(notes: SubTaskNotes, outcome: SubTaskOutcome) -> list[str]:
    """Criteria that neither passed nor stand open in the attempt whose output the outcome delivers."""
    criteria = [each.text for each in notes.subtask.success_criteria] if notes.subtask is not None else []
    attempts = [each.attempt for each in notes.results if each.output == outcome.output] or [notes.attempt]
    best = criteria
    for attempt in attempts:
        passed = {each.criterion for each in notes.judged.get(attempt, ()) if each.verdict != "fail"}
        best = min(best, [text for text in criteria if text not in passed], key=len)
    return best


@on(SubTaskOutcome)
def matched_with_failure(task: TaskNotes, outcome: SubTaskOutcome, envelope: Envelope) -> Iterator[str]:
    """A subtask that counts as matched though a verdict of it fails, or failed though none does."""
    failing = [verdict.criterion for verdict in outcome.criteria_verdicts if verdict.verdict == "fail"]
    if outcome.status == "matched" and failing:
        yield f"the subtask counts as matched, and failed: {_quoted(failing)}"
    elif outcome.status == "failed" and outcome.criteria_verdicts and not failing:
        yield "the subtask counts as failed, and none of its verdicts fails"


@on(SubTaskOutcome)
def verdicts_differ(task: TaskNotes, outcome: SubTaskOutcome, envelope: Envelope) -> Iterator[str]:
    """An outcome with other verdicts than those that its judge put on the stream."""
    notes = task.of(outcome.subtask_id)
    last = notes.judged.get(notes.attempt, [])
    if notes.results and outcome.criteria_verdicts != tuple(last):
        forged = [each.criterion for each in outcome.criteria_verdicts if each not in last]
        left_out = [each.criterion for each in last if each not in outcome.criteria_verdicts]
        yield f"verdicts that no judge published: {_quoted(forged)}; left out or moved: {_quoted(left_out)}"


@on(SubTaskOutcome)
def matched_on_failed_result(task: TaskNotes, outcome: SubTaskOutcome, envelope: Envelope) -> Iterator[str]:
    """A subtask that counts as matched on a result that says it failed, or by infrastructure."""
    results = [each for each in task.of(outcome.subtask_id).results if each.output == outcome.output]
    usable = [each for each in results if each.status != "failed" and each.infrastructure is None]
    if outcome.status == "matched" and (outcome.infrastructure is not None or (results and not usable)):
        yield f"the subtask counts as matched, and its result says: {outcome.infrastructure or 'failed'}"


@on(SubTaskOutcome)
def output_of_no_attempt(task: TaskNotes, outcome: SubTaskOutcome, envelope: Envelope) -> Iterator[str]:
    """An outcome with an output that no attempt has had, and no second way."""
    notes = task.of(outcome.subtask_id)
    said = [*(each.output for each in notes.results), *(printed.strip() for printed in notes.trials)]
    if notes.results and outcome.output not in said:
        yield f"no attempt of the subtask said {outcome.output[:80]!r}"


@on(SubTaskOutcome)
def outcome_calls_differ(task: TaskNotes, outcome: SubTaskOutcome, envelope: Envelope) -> Iterator[str]:
    """An outcome with other tool calls than its attempts."""
    notes = task.of(outcome.subtask_id)
    calls = notes.every_call()
    if notes.results and outcome.tool_calls != calls:
        yield f"the outcome cites {len(outcome.tool_calls)} calls; its attempts made {len(calls)}, or others"


@on(SubTaskOutcome)
def trajectory_differs(task: TaskNotes, outcome: SubTaskOutcome, envelope: Envelope) -> Iterator[str]:
    """A gap trajectory that its verdicts do not bear out."""
    notes = task.of(outcome.subtask_id)
    if not notes.results:
        return
    if len(outcome.gap_trajectory) != len(notes.results):
        yield f"the trajectory has {len(outcome.gap_trajectory)} points for {len(notes.results)} attempts"
        return
    for point in outcome.gap_trajectory:
        verdicts = notes.judged.get(point.attempt, [])
        unmet = tuple(each.criterion for each in verdicts if each.verdict == "fail")
        score = 1 - len(unmet) / len(verdicts) if verdicts else 1.0
        if point.unmet_criteria != unmet or abs(point.score - score) > 1e-9:
            yield f"attempt {point.attempt} met {score:.2f} of its criteria, not {point.score:.2f}, or others"


@on(SubTaskOutcome)
def correction_skipped(task: TaskNotes, outcome: SubTaskOutcome, envelope: Envelope) -> Iterator[str]:
    """A subtask that was given up while a correction was due."""
    notes = task.of(outcome.subtask_id)
    last = notes.result(notes.attempt)
    if (
        outcome.status != "failed"
        or last is None
        or outcome.hopeless
        or len(notes.corrections) >= task.law.max_retries
    ):
        return
    final = last.status == "failed" or last.infrastructure is not None
    failing = [each for each in notes.judged.get(last.attempt, ()) if each.verdict == "fail"]
    final = final or (bool(notes.corrections) and all(each.decided_by is DecidedBy.FACT for each in failing))
    refused = any(call.withheld_by == "person" for call in last.attempt_calls)
    if not final and not refused:
        yield f"given up after attempt {last.attempt}, with {task.law.max_retries} corrections allowed"


@on(SubTaskOutcome)
def assurance_differs(task: TaskNotes, outcome: SubTaskOutcome, envelope: Envelope) -> Iterator[str]:
    """An outcome that claims more than its weakest verdict bears, or hides which criteria stand open."""
    if not task.of(outcome.subtask_id).results:
        return
    strengths = [each.decided_by.assurance for each in outcome.criteria_verdicts]
    due = min(strengths, key=lambda one: one.strength, default=Assurance.UNVERIFIED)
    if outcome.assurance is not due:
        yield f"the outcome is called {outcome.assurance}, and its weakest verdict is {due}"
    left = tuple(each.criterion for each in outcome.criteria_verdicts if each.verdict == "open")
    if outcome.open != left:
        yield f"{len(left)} criteria stand open; the outcome names {len(outcome.open)}, or others"


@on(SubTaskOutcome)
def second_outcome(task: TaskNotes, outcome: SubTaskOutcome, envelope: Envelope) -> Iterator[str]:
    """Two outcomes of one subtask, or one of a subtask that was never dispatched."""
    notes = task.of(outcome.subtask_id)
    if notes.subtask is None:
        yield f"subtask {outcome.subtask_id} was never dispatched"
    elif notes.outcome is not None:
        yield f"subtask {outcome.subtask_id} has its outcome already"


def _quoted(criteria: Sequence[str]) -> str:
    return json.dumps(list(criteria)[:3], ensure_ascii=False)


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
    correction_without_failure,
    too_many_corrections,
    retried_infrastructure,
    retried_refusal,
    correction_class_differs,
    outcome_without_verdicts,
    matched_with_failure,
    verdicts_differ,
    matched_on_failed_result,
    output_of_no_attempt,
    outcome_calls_differ,
    trajectory_differs,
    correction_skipped,
    assurance_differs,
    second_outcome,
)
