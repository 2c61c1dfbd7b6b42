"""Invariants on replans and progress, with the thresholds for repeated directives and repeated calls.

They find criteria that disappear or are weakened, and work that continues without progress.
"""

from __future__ import annotations

from collections.abc import Iterator

from artoo.auditor.invariants.invariant import on
from artoo.auditor.notes import TaskNotes
from artoo.contracts.criteria import Criterion, Mode
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CorrectionSignal, ToolCalled
from artoo.contracts.plan import Plan
from artoo.contracts.solution import Decided, Directive, FinalResult

TOLERANCE = 1e-6
STORM = 6
"""Number of corrections of unmatched subtasks after which a report is made. Three subtasks together may have as
many."""
REPEATS = 5
"""Number of identical calls in one subtask by which the executor counts as stuck."""

_KEEPING = (Directive.CHANGE_PATH, Directive.REFINE)


# --- criteria ---------------------------------------------------------------------------------------------------


@on(Plan)
def criterion_dropped(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """Report a replan without a criterion of the task that an earlier round had. Criteria are promises to the
    user."""
    texts = {criterion.text for criterion in plan.task_criteria}
    for criterion in task.criteria:
        if criterion.text not in texts:
            yield f"“{criterion.text}” was a task criterion in an earlier round and is gone"


@on(Plan)
def criterion_vanished(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """Report a replan without a criterion that a subtask of the previous round did not meet or that was not
    judged."""
    account, before = task.account, task.manifest
    if account is None or before is None or plan.round == before.round:
        return
    verdicts = [verdict for outcome in account.outcomes for verdict in outcome.criteria_verdicts]
    failed = {each.criterion for each in verdicts if each.verdict == "fail"}
    settled = {each.criterion for each in verdicts} - failed
    planned = dict.fromkeys(each.text for entry in before.subtasks for each in entry.success_criteria)
    known = {each.text for each in plan.task_criteria}
    for text in planned:
        if text not in settled and text not in known:
            yield f"“{text}” is not met, and the plan does not hold it any more"


@on(Plan)
def criterion_softened(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """Report a replan that weakens a criterion of the task: its check is removed or replaced, or it is no longer
    verifiable."""
    now = {criterion.text: criterion for criterion in plan.task_criteria}
    for before in task.criteria:
        after = now.get(before.text)
        if after is not None and _softer(before, after):
            yield f"“{before.text}” was {_strength(before)} in an earlier round and is {_strength(after)} now"


def _softer(before: Criterion, after: Criterion) -> bool:
    lost_check = before.check is not None and after.check != before.check
    return lost_check or (before.mode is Mode.VERIFIABLE and after.mode is not Mode.VERIFIABLE)


def _strength(criterion: Criterion) -> str:
    return criterion.mode.value + (f", decided by {criterion.check!r}" if criterion.check is not None else "")


@on(FinalResult)
def accepted_unmet(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """Report a task that was accepted with an unmet criterion, with D above zero, or with another loss than that of
    its decision."""
    if result.directive is Directive.ACCEPT and result.unmet:
        yield f"accepted, and it says itself that “{result.unmet[0].criterion}” is unmet"
    if result.directive is Directive.ACCEPT and result.loss.D > TOLERANCE:
        yield f"accepted with D {result.loss.D:.2f}"
    decided, cause = task.decided or (None, None)
    if decided is not None and cause == envelope.cause_id and result.loss != decided.loss:
        yield "the end states another loss than the decision"


# --- no progress ------------------------------------------------------------------------------------------------


@on(Decided, nature="anomaly")
def ggs_thrashing(task: TaskNotes, decided: Decided, envelope: Envelope) -> Iterator[str]:
    """Report break_symmetry directives in a row although D does not fall, which means that new plans do not improve
    the result."""
    if decided.directive is Directive.BREAK_SYMMETRY:
        yield from _not_falling(task, decided, (Directive.BREAK_SYMMETRY,))


@on(Decided, nature="anomaly")
def steady_distance(task: TaskNotes, decided: Decided, envelope: Envelope) -> Iterator[str]:
    """Report change_path or refine in rounds in a row although D does not fall, which means that the method has no
    effect."""
    if decided.directive in _KEEPING:
        yield from _not_falling(task, decided, _KEEPING)


def _not_falling(task: TaskNotes, decided: Decided, same: tuple[Directive, ...]) -> Iterator[str]:
    before = task.directive
    if before is not None and before.directive in same and decided.loss.D >= before.loss.D - TOLERANCE:
        moved = f"D {before.loss.D:.2f} → {decided.loss.D:.2f}"
        directives = " and ".join(dict.fromkeys((before.directive, decided.directive)))
        yield f"{directives} in rounds {decided.round - 1} and {decided.round}, {moved}"


@on(Decided, nature="anomaly")
def suspicious_improvement(task: TaskNotes, decided: Decided, envelope: Envelope) -> Iterator[str]:
    """Report cell 6 of the paper, as the solver (R7) has marked it: the loss falls although the approach is
    wrong."""
    if decided.suspicious:
        yield f"round {decided.round}: ∇L {decided.grad_l:+.3f} with P {decided.loss.P:.2f}"


@on(Plan, nature="anomaly")
def same_plan_again(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """Report a plan after break_symmetry that equals an earlier plan."""
    if task.directive is None or task.directive.directive is not Directive.BREAK_SYMMETRY:
        return
    if task.drafts and task.drafts[-1] in task.drafts[:-1]:
        yield "the planner's model gave a plan that has failed before, though it had to break with it"


@on(CorrectionSignal, nature="anomaly")
def correction_storm(task: TaskNotes, signal: CorrectionSignal, envelope: Envelope) -> Iterator[str]:
    """Report every sixth correction of subtasks that have not matched. The validator (R4a) and the executor (R3)
    repeat themselves then."""
    corrections = 1 + task.corrections.total()
    if corrections % STORM == 0:
        subtasks = len({*task.corrections, signal.subtask_id})
        yield f"{corrections} corrections of {subtasks} subtasks, and none of these has matched"


@on(ToolCalled, nature="anomaly")
def stuck_loop(task: TaskNotes, called: ToolCalled, envelope: Envelope) -> Iterator[str]:
    """Report a call that was made many times in one subtask."""
    if task.repeated[called.subtask_id, called.call.tool, hash(called.call.input)] + 1 == REPEATS:
        yield f"the call {called.call.tool} {called.call.input[:80]!r} was made {REPEATS} times in one subtask"
