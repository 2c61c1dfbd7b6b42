"""R4b: it waits for everything, merges what matched and nothing else, and lets nothing unmet through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artoo.auditor.law import merged
from artoo.auditor.notes import RoundNotes, TaskNotes
from artoo.auditor.rules.checks import passed_by_model, passes_said, recheck
from artoo.auditor.rules.rule import Rule, on
from artoo.contracts.criteria import Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import CriterionJudged, CriterionVerdict, DecidedBy, SubTaskOutcome
from artoo.contracts.failure import FailureClass
from artoo.contracts.roles import Role
from artoo.contracts.solution import OutcomeSummary, ReplanRequest, StoppedBy


def _due(task: TaskNotes) -> list[str]:
    """The subtasks that this round delivers: carried ones, then its own."""
    manifest = task.round.manifest if task.round is not None else None
    return [*manifest.carried, *[each.subtask_id for each in manifest.subtasks]] if manifest is not None else []


def _of_round(task: TaskNotes) -> list[SubTaskOutcome]:
    outcomes = task.outcomes()
    return [outcomes[key] for key in _due(task) if key in outcomes]


@on(ModelCalled)
def merge_asked_after_failure(task: TaskNotes, called: ModelCalled, envelope: Envelope) -> Iterator[str]:
    """R4b asks its model although an outcome failed: then there is nothing to judge."""
    if called.contract == "MergeReport" and any(each.status == "failed" for each in _of_round(task)):
        yield "R4b asked its model about a round in which a subtask failed"


@on(CriterionJudged)
def task_criterion_passed_by_nobody(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> Iterator[str]:
    """A task criterion that passes without its check, without a model's answer, and without a subtask's verdict."""
    verdict = judged.verdict
    if envelope.sender is not Role.META_VALIDATOR or verdict.verdict != "pass" or task.round is None:
        return
    if _covered(verdict, _of_round(task)):
        return
    request = (Criterion(text=task.spec.intent),) if task.spec is not None else ()  # R4b may bring it in
    known = (*_criteria(task), *request)
    criterion = next((each for each in known if each.text == verdict.criterion), None)
    if criterion is None:
        yield f"“{verdict.criterion}” is no criterion of this task"
    elif verdict.decided_by in (DecidedBy.FACT, DecidedBy.NOBODY) or (
        verdict.decided_by is DecidedBy.CHECK and not criterion.check_decides
    ):
        yield f"“{verdict.criterion}” passed by {verdict.decided_by}, and no such judge can pass it"
    elif verdict.decided_by is DecidedBy.JUDGEMENT and not _passed_by_model(task.round):
        yield f"“{verdict.criterion}” passed by a model that was not asked, or did not say so"


def _criteria(task: TaskNotes) -> Sequence[Criterion]:
    manifest = task.round.manifest if task.round is not None else None
    return manifest.task_criteria if manifest is not None else ()


def _covered(verdict: CriterionVerdict, outcomes: Sequence[SubTaskOutcome]) -> bool:
    """Whether the only subtask's own verdict says the same."""
    if len(outcomes) != 1:
        return False
    return any(
        each.criterion == verdict.criterion and each.verdict == verdict.verdict
        for each in outcomes[0].criteria_verdicts
    )


def _passed_by_model(round_notes: RoundNotes) -> bool:
    return sum(map(passed_by_model, round_notes.judged)) < passes_said(round_notes.merge_calls)


@on(CriterionJudged)
def task_check_disagrees(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> Iterator[str]:
    """A task verdict by a check that gives another verdict when it is made again."""
    verdict, outcomes = judged.verdict, _of_round(task)
    if envelope.sender is not Role.META_VALIDATOR or verdict.decided_by is not DecidedBy.CHECK:
        return
    criterion = next((each for each in _criteria(task) if each.text == verdict.criterion), None)
    if criterion is None or criterion.check is None or _covered(verdict, outcomes):
        return
    calls = [call for outcome in outcomes for call in outcome.tool_calls]
    again = recheck(criterion.check, _with_reply(task, merged(outcomes)), calls)
    if again is not None and again != (verdict.verdict == "pass"):
        yield f"“{verdict.criterion}” is {verdict.verdict} by its check; made again, it says otherwise"


@on(OutcomeSummary)
def summary_incomplete(task: TaskNotes, summary: OutcomeSummary, envelope: Envelope) -> Iterator[str]:
    """A summary that does not wait: a subtask of the manifest, or a carried one, has no outcome in it."""
    there = {outcome.subtask_id for outcome in summary.outcomes}
    missing = [key for key in _due(task) if key not in there]
    if missing:
        yield f"{len(missing)} of {len(_due(task))} subtasks have no outcome in the summary, such as {missing[0]}"


@on(OutcomeSummary)
def summary_over_failure(task: TaskNotes, summary: OutcomeSummary, envelope: Envelope) -> Iterator[str]:
    """A summary although a subtask failed or a criterion is unmet."""
    failed = [each.subtask_id for each in (*summary.outcomes, *_of_round(task)) if each.status == "failed"]
    unmet = [each.criterion for each in summary.task_verdicts if each.verdict == "fail"]
    if failed:
        yield f"subtask {failed[0]} failed, and the round counts as matched"
    if unmet:
        yield f"“{unmet[0]}” is unmet, and the round counts as matched"


@on(OutcomeSummary)
def task_criterion_unjudged(task: TaskNotes, summary: OutcomeSummary, envelope: Envelope) -> Iterator[str]:
    """A summary in which a criterion of the task, of any round, has no verdict."""
    of_parts = (verdict for outcome in summary.outcomes for verdict in outcome.criteria_verdicts)
    judged = {verdict.criterion for verdict in (*summary.task_verdicts, *of_parts)}
    due = dict.fromkeys(each.text for each in (*task.criteria, *_criteria(task)))
    missing = [text for text in due if text not in judged]
    if missing:
        yield f"nobody judged the task criterion “{missing[0]}”"


@on(OutcomeSummary)
def summary_verdicts_differ(task: TaskNotes, summary: OutcomeSummary, envelope: Envelope) -> Iterator[str]:
    """A summary with task verdicts that R4b did not put on the stream."""
    yield from _foreign_verdicts(task, summary.task_verdicts)


@on(ReplanRequest)
def request_verdicts_differ(task: TaskNotes, request: ReplanRequest, envelope: Envelope) -> Iterator[str]:
    """A replan request with task verdicts that R4b did not put on the stream."""
    yield from _foreign_verdicts(task, request.task_verdicts)


def _foreign_verdicts(task: TaskNotes, verdicts: Sequence[CriterionVerdict]) -> Iterator[str]:
    judged = task.round.judged if task.round is not None else []
    for verdict in verdicts:
        if verdict not in judged:
            yield f"the verdict on “{verdict.criterion}” ({verdict.verdict}) was never on the stream"


@on(OutcomeSummary)
def summary_outcomes_differ(task: TaskNotes, summary: OutcomeSummary, envelope: Envelope) -> Iterator[str]:
    """A summary with outcomes that no validator published."""
    yield from _foreign_outcomes(task, summary.outcomes)


@on(ReplanRequest)
def request_outcomes_differ(task: TaskNotes, request: ReplanRequest, envelope: Envelope) -> Iterator[str]:
    """A replan request with outcomes that no validator published."""
    yield from _foreign_outcomes(task, request.outcomes)


def _foreign_outcomes(task: TaskNotes, outcomes: Sequence[SubTaskOutcome]) -> Iterator[str]:
    published = task.outcomes()
    for outcome in outcomes:
        known = published.get(outcome.subtask_id)
        if known is None:
            yield f"subtask {outcome.subtask_id} has an outcome that was never on the stream"
        elif known != outcome:
            yield f"the outcome of subtask {outcome.subtask_id} is not the one that was on the stream"


def _is_said(task: TaskNotes, output: str, outcomes: Sequence[SubTaskOutcome]) -> bool:
    """Whether an output is a subtask's, all of them, the plan's reply or question, or in an answer of the merge's
    writer; where nothing matched, also why it cannot be done.
    """
    matched = [outcome.output.strip() for outcome in outcomes if outcome.status == "matched"]
    plan_says = (task.round.plan.reply, task.round.plan.question) if task.round is not None else ()
    hopeless = [outcome for outcome in outcomes if outcome.hopeless] if not matched else []
    why = merged([outcome.model_copy(update={"status": "matched"}) for outcome in hopeless])
    reached = merged(outcomes)
    known = (reached, _with_reply(task, reached), "\n\n".join(filter(None, matched)), *plan_says, why, *matched)
    answers = [answer for answer, _ in task.round.merge_calls] if task.round is not None else []
    return output.strip() in (each.strip() for each in known) or any(output in answer for answer in answers)


def _with_reply(task: TaskNotes, reached: str) -> str:
    """Return what was reached with the reply of the plan, if it has one."""
    reply = task.round.plan.reply if task.round is not None else ""
    return "\n\n".join(filter(None, (reached, reply))) if reached not in reply or not reply else reply


@on(OutcomeSummary)
def summary_ungrounded(task: TaskNotes, summary: OutcomeSummary, envelope: Envelope) -> Iterator[str]:
    """A merged output that neither a subtask nor the merge's writer said, or a summary that says more."""
    if not _is_said(task, summary.merged_output, summary.outcomes):
        yield f"the merged output is not that of the outcomes: {summary.merged_output[:80]!r}"
    if summary.summary and not summary.merged_output.startswith(summary.summary):
        yield f"the summary is not from the merged output: {summary.summary[:80]!r}"


@on(ReplanRequest)
def merge_ungrounded(task: TaskNotes, request: ReplanRequest, envelope: Envelope) -> Iterator[str]:
    """A replan request whose merged output neither its matched subtasks nor the merge's writer said."""
    if not _is_said(task, request.merged_output, request.outcomes):
        yield f"the merged output is not that of the outcomes: {request.merged_output[:80]!r}"


@on(ReplanRequest)
def replan_without_failure(task: TaskNotes, request: ReplanRequest, envelope: Envelope) -> Iterator[str]:
    """A replan request though everything matched and every criterion is met."""
    failed = any(outcome.status == "failed" for outcome in request.outcomes)
    unmet = any(verdict.verdict == "fail" for verdict in request.task_verdicts)
    if request.stopped_by is None and not (failed or unmet):
        yield "nothing failed and nothing is unmet, and the round counts as short of its goal"


@on(ReplanRequest)
def round_cut_short(task: TaskNotes, request: ReplanRequest, envelope: Envelope) -> Iterator[str]:
    """A replan request that leaves out outcomes, or miscounts what never ran, without having been told to halt."""
    if task.cause_kind(envelope) == "Halt" or task.round is None or task.round.manifest is None:
        return
    there = {outcome.subtask_id for outcome in request.outcomes}
    left_out = [each.subtask_id for each in _of_round(task) if each.subtask_id not in there]
    if left_out:
        yield f"the outcome of subtask {left_out[0]} is left out"
    entries = task.round.manifest.subtasks
    not_run = sum(len(each.success_criteria) for each in entries if each.subtask_id not in there)
    if request.not_run != not_run:
        yield f"{not_run} criteria never ran, not {request.not_run}"


@on(ReplanRequest)
def corrections_miscounted(task: TaskNotes, request: ReplanRequest, envelope: Envelope) -> Iterator[str]:
    """A replan request with another number of corrections than its outcomes had."""
    corrections = sum(outcome.corrections for outcome in request.outcomes)
    if request.corrections != corrections:
        yield f"its outcomes were corrected {corrections} times, not {request.corrections}"


@on(ReplanRequest)
def wrong_recommendation(task: TaskNotes, request: ReplanRequest, envelope: Envelope) -> Iterator[str]:
    """A recommendation to go on when the replans are spent or work was stopped, or to stop when neither is so."""
    number = task.round.plan.round if task.round is not None else 1
    spent = number - 1 >= task.law.max_replans or request.stopped_by is not None
    if (request.recommendation == "abandon") != spent:
        yield f"R4b recommends to {request.recommendation} after {number - 1} of {task.law.max_replans} replans"


@on(ReplanRequest)
def stop_without_cause(task: TaskNotes, request: ReplanRequest, envelope: Envelope) -> Iterator[str]:
    """A round that is stopped for a reason which neither its outcomes nor its plan give."""
    if request.stopped_by is None or task.cause_kind(envelope) == "Halt":
        return
    missed = [verdict for verdict in request.task_verdicts if verdict.verdict == "fail"]
    replied = bool(task.round is not None and task.round.plan.reply)
    cannot = replied and all(each.failure_class is not FailureClass.LOGICAL for each in missed)
    hopeless = cannot or any(outcome.hopeless for outcome in request.outcomes)
    refused = any(outcome.refused for outcome in request.outcomes)
    asked = task.round.plan.question if task.round is not None else ""
    grounds = {
        StoppedBy.MISSING_INPUT: hopeless,
        StoppedBy.REFUSED_BY_USER: refused,
        StoppedBy.QUESTION: bool(asked) and request.merged_output == asked,
    }
    if not grounds.get(request.stopped_by, False):
        yield f"stopped by {request.stopped_by}, and nothing says so"


RULES: tuple[Rule, ...] = (
    merge_asked_after_failure,
    task_criterion_passed_by_nobody,
    task_check_disagrees,
    summary_incomplete,
    summary_over_failure,
    task_criterion_unjudged,
    summary_verdicts_differ,
    request_verdicts_differ,
    summary_outcomes_differ,
    request_outcomes_differ,
    summary_ungrounded,
    merge_ungrounded,
    replan_without_failure,
    round_cut_short,
    corrections_miscounted,
    wrong_recommendation,
    stop_without_cause,
)
