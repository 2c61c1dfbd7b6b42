"""The end of a task: decided, true to its outcomes, told whole, and the last word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artoo.auditor import law as control
from artoo.auditor.notes import TaskNotes
from artoo.auditor.rules.rule import Rule, on
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CriterionVerdict, SubTaskOutcome
from artoo.contracts.roles import Role
from artoo.contracts.solution import Decided, Directive, FinalResult, OutcomeSummary, ReplanRequest, StoppedBy

_LAW1 = "[LAW1]"


def _decision(task: TaskNotes, envelope: Envelope) -> Decided | None:
    """The decision that this end carries out: the last one about the message that both answer."""
    return next((decided for decided, cause in reversed(task.decided) if cause == envelope.cause_id), None)


def _basis(task: TaskNotes, envelope: Envelope) -> OutcomeSummary | ReplanRequest | None:
    """What R4b had said when the task ended, if the end answers it."""
    key = envelope.cause_id or ""
    return task.summaries.get(key) or task.replans.get(key)


def _bare(task: TaskNotes) -> bool:
    """Whether R7 itself has failed: then the end is only that."""
    return Role.SOLVER in task.failed_roles


@on(FinalResult)
def end_undecided(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """An end without a decision, or other than the decision."""
    decided = _decision(task, envelope)
    if decided is None:
        if not _bare(task):
            yield f"{result.directive} without a decision about what it answers"
    elif decided.directive is not Directive(result.directive):
        yield f"the decision is {decided.directive}; the task ended with {result.directive}"


@on(FinalResult)
def accept_without_summary(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """An accept that does not rest on R4b's summary: the fan-in gate was passed by."""
    if result.directive is Directive.ACCEPT and envelope.cause_id not in task.summaries:
        yield f"the task was accepted in answer to a {task.cause_kind(envelope)}, not to R4b's OutcomeSummary"


@on(FinalResult)
def success_without_request(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """A success that does not rest on R4b's account of what is unmet or open."""
    known = envelope.cause_id in task.replans or (envelope.cause_id in task.summaries and bool(result.open))
    if result.directive is Directive.SUCCESS and not known:
        yield f"the task counts as a success in answer to a {task.cause_kind(envelope)}, not to R4b's account"


@on(FinalResult)
def accept_over_failure(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """An accept or success although a subtask failed, a criterion of the task is unmet, or nothing was done."""
    basis = _basis(task, envelope)
    if result.directive is Directive.ABANDON or basis is None:
        return
    failed = [each for each in basis.outcomes if each.status == "failed"]
    unmet = [each for each in basis.task_verdicts if each.verdict == "fail"]
    if result.directive is Directive.ACCEPT and failed:
        yield f"accepted, and subtask {failed[0].subtask_id} failed"
    if unmet:
        yield f"{result.directive}, and the task criterion “{unmet[0].criterion}” is unmet"
    if result.directive is Directive.ACCEPT and result.unmet:
        yield f"accepted, and it says itself that “{result.unmet[0].criterion}” is unmet"
    if result.directive is Directive.ACCEPT and result.loss.D > control.TOLERANCE:
        yield f"accepted with D {result.loss.D:.2f}"


@on(FinalResult)
def end_figures_differ(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """An end with other figures than its decision, or other replans than there were."""
    decided = _decision(task, envelope)
    if decided is not None and (result.loss != decided.loss or result.grad_l != decided.grad_l):
        yield "the end states another loss or gradient than the decision"
    if result.replans != len(task.directives):
        yield f"the task was replanned {len(task.directives)} times, not {result.replans}"
    previous = task.directives[-1].directive if task.directives else Directive.INIT
    if result.prev_directive is not previous:
        yield f"the last round obeyed {previous}, not {result.prev_directive}"


@on(FinalResult)
def wrong_reason(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """An abandoned task that says it ended for another reason than it did, or one that was not and says so."""
    if result.directive is not Directive.ABANDON:
        if result.stopped_by is not None:
            yield f"{result.directive}, and stopped by {result.stopped_by}"
        return
    decided = _decision(task, envelope)
    if decided is None or _bare(task):
        return
    due = _reason(task, decided, envelope)
    if due is not None and result.stopped_by is not due:
        yield f"the task was stopped by {due}, and says {result.stopped_by}"


def _reason(task: TaskNotes, decided: Decided, envelope: Envelope) -> StoppedBy | None:
    request = task.replans.get(envelope.cause_id or "")
    kind = task.cause_kind(envelope)
    if request is None and kind != "PlanRefused":
        return None
    if request is not None and request.stopped_by is not None:
        return request.stopped_by
    terms = control.Terms(decided.loss.D, decided.loss.P, decided.loss.Omega)
    ruled = control.ruling(task.law, terms, decided.grad_l, request, max(0, decided.worsening_rounds - 1))
    if ruled.stopped_by is not None:
        return ruled.stopped_by
    last = next(reversed(task.replans.values()), None)
    return None if last is not None and last.stopped_by is not None else StoppedBy.REPLANS


@on(FinalResult)
def output_ungrounded(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """An end whose output R4b has not merged."""
    basis = _basis(task, envelope)
    if basis is not None:
        known = [basis.merged_output]
    else:
        known = ["", *(request.merged_output for request in task.replans.values())]
    if result.output not in known:
        yield f"R4b did not merge this output: {result.output[:80]!r}"


@on(FinalResult)
def summary_says_more(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """An accepted task whose summary says more than its output, or an end whose summary leaves the output out."""
    if result.output and result.output not in result.summary:
        yield "the summary leaves the output out"
    if result.directive is Directive.ACCEPT and not result.withheld:
        rest = result.summary.replace(result.output, "", 1).strip()
        if rest:
            yield f"the summary says what no outcome does: {rest[:80]!r}"


@on(FinalResult)
def unmet_not_told(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """A criterion that is unmet and that the person is not told of."""
    basis = _basis(task, envelope)
    if basis is None or _bare(task):
        return
    told = {each.criterion for each in result.unmet}
    for criterion in dict.fromkeys(each.criterion for each in _failing(basis)):
        if criterion not in told:
            yield f"“{criterion}” is unmet, and the result does not list it"
        elif criterion not in result.summary:
            yield f"“{criterion}” is unmet, and the summary does not say so"


def _failing(basis: OutcomeSummary | ReplanRequest) -> Iterator[CriterionVerdict]:
    for verdict in (*(v for outcome in basis.outcomes for v in outcome.criteria_verdicts), *basis.task_verdicts):
        if verdict.verdict == "fail":
            yield verdict


@on(FinalResult)
def withheld_not_told(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """Something that Law 1 kept back and that the person is not told of."""
    basis = _basis(task, envelope)
    if basis is not None:
        missing = [path for path in _withheld(basis.outcomes) if path not in result.withheld]
        if missing:
            yield f"{missing[0]} was withheld, and the result does not say so"
    if bool(result.withheld) != result.summary.startswith(_LAW1):
        yield "the [LAW1] mark of the summary and the list of what was withheld do not agree"


def _withheld(outcomes: Sequence[SubTaskOutcome]) -> list[str]:
    calls = [call for outcome in outcomes for call in outcome.tool_calls]
    made = {path for call in calls for path in call.changes}
    return [path for call in calls for path in call.dropped if path not in made]


@on(FinalResult)
def cost_understated(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """An end that says it used less than the stream shows, or more tool calls than there were."""
    cost, spent = result.cost, task.spending
    if cost.llm_calls < spent.answered:
        yield f"{spent.answered} model calls were answered; the result says {cost.llm_calls}"
    tokens = cost.prompt_tokens + cost.completion_tokens
    if tokens < spent.answered_tokens:
        yield f"{spent.answered_tokens} tokens were used; the result says {tokens}"
    called = sum(len(calls) for notes in task.subtasks.values() for calls in notes.calls.values())
    if cost.tool_calls > called:
        yield f"{called} tools were called; the result says {cost.tool_calls}"


@on(FinalResult)
def done_without_outcome(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """An end that lists as done what no outcome did."""
    done = {each.intent for each in task.outcomes().values() if each.done}
    for intent in result.done:
        if intent not in done:
            yield f"{intent[:80]!r} is listed as done, and no subtask did it"


RULES: tuple[Rule, ...] = (
    end_undecided,
    accept_without_summary,
    success_without_request,
    accept_over_failure,
    end_figures_differ,
    wrong_reason,
    output_ungrounded,
    summary_says_more,
    unmet_not_told,
    withheld_not_told,
    cost_understated,
    done_without_outcome,
)
