"""R4a's corrections and outcomes: each follows from the verdicts, and says no more than they do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from artoo.auditor.notes import SubTaskNotes, TaskNotes, unexpected
from artoo.auditor.rules.rule import Rule, on
from artoo.contracts.criteria import Assurance
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CallStatus, CorrectionSignal, DecidedBy, SubTaskOutcome, ToolCall
from artoo.contracts.failure import FailureClass
from artoo.contracts.findings import BLAMES_NOBODY

STORM = 6
"""Corrections of subtasks that have not matched: as many as three of them may have."""


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


@on(CorrectionSignal, nature="anomaly")
def correction_storm(task: TaskNotes, signal: CorrectionSignal, envelope: Envelope) -> Iterator[str]:
    """Corrections rain on subtasks of which none has matched: R4a and R3 turn in circles. Said at every sixth."""
    missed = [each for each in task.subtasks.values() if each.outcome is None or each.outcome.status != "matched"]
    corrections = 1 + sum(len(each.corrections) for each in missed)
    if corrections % STORM == 0:
        yield f"{corrections} corrections of {len(missed)} subtasks, and none of these has matched"


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
def matched_on_unnamed_failure(task: TaskNotes, outcome: SubTaskOutcome, envelope: Envelope) -> Iterator[str]:
    """A subtask that counts as matched, by no check, on a last call that was cut short or kept back, unnamed."""
    by_check = all(verdict.decided_by is DecidedBy.CHECK for verdict in outcome.criteria_verdicts)
    results = [each for each in task.of(outcome.subtask_id).results if each.output == outcome.output]
    if outcome.status != "matched" or by_check or not results or results[-1].status != "completed":
        return
    ran = [(number, call) for number, call in enumerate(results[-1].tool_calls, 1) if not call.never_ran]
    number, last = ran[-1] if ran else (0, None)
    if last is not None and number not in results[-1].failures and _did_not_end(last):
        yield f"the subtask counts as matched; its call {number} ended as {last.status}, and nothing says so"


def _did_not_end(call: ToolCall) -> bool:
    return call.status in (CallStatus.TIMEOUT, CallStatus.INTERRUPTED, CallStatus.RUNNING) or bool(call.dropped)


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
    final = last.status == "failed" or last.infrastructure is not None or last.stuck
    failing = [each for each in notes.judged.get(last.attempt, ()) if each.verdict == "fail"]
    asked = bool(notes.corrections)  # once: about a fact, or a check that cannot be used
    final = final or (asked and all(each.decided_by is DecidedBy.FACT for each in failing))
    final = final or (asked and any(each.reason and each.reason.found in BLAMES_NOBODY for each in failing))
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
    yield from unexpected(task, outcome.subtask_id)


def _quoted(criteria: Sequence[str]) -> str:
    return json.dumps(list(criteria)[:3], ensure_ascii=False)


RULES: tuple[Rule, ...] = (
    correction_without_failure,
    too_many_corrections,
    correction_storm,
    retried_infrastructure,
    retried_refusal,
    correction_class_differs,
    outcome_without_verdicts,
    matched_with_failure,
    verdicts_differ,
    matched_on_failed_result,
    matched_on_unnamed_failure,
    output_of_no_attempt,
    outcome_calls_differ,
    trajectory_differs,
    correction_skipped,
    assurance_differs,
    second_outcome,
)
