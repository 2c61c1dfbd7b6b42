"""R1, R2, dispatcher: the request is kept, the criteria are frozen, what is dispatched is what was planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artoo.auditor.notes import RoundNotes, TaskNotes
from artoo.auditor.rules.rule import Rule, on
from artoo.contracts.criteria import Criterion, Mode
from artoo.contracts.envelope import Envelope
from artoo.contracts.plan import DispatchManifest, ManifestEntry, Plan, SubTask
from artoo.contracts.request import TaskSpec
from artoo.contracts.solution import Directive


@on(TaskSpec)
def request_altered(task: TaskNotes, spec: TaskSpec, envelope: Envelope) -> Iterator[str]:
    """A TaskSpec that is not about the person's own words."""
    if task.request is not None and spec.raw_input != task.request.text:
        yield f"the person asked {task.request.text[:80]!r}, the TaskSpec says {spec.raw_input[:80]!r}"


@on(Plan)
def criterion_dropped(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """A replan that drops a task criterion of an earlier round: they are a contract with the person."""
    texts = {criterion.text for criterion in plan.task_criteria}
    for criterion in task.criteria:
        if criterion.text not in texts:
            yield f"“{criterion.text}” was a task criterion in an earlier round and is gone"


@on(Plan)
def criterion_vanished(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """A replan without a criterion that a subtask of the round before left unmet, or that nobody judged."""
    last = next(reversed(task.replans.values()), None)
    before = task.round.manifest if task.round is not None else None
    if last is None or before is None or plan.round == before.round:
        return
    verdicts = [verdict for outcome in last.outcomes for verdict in outcome.criteria_verdicts]
    failed = {each.criterion for each in verdicts if each.verdict == "fail"}
    settled = {each.criterion for each in verdicts} - failed
    planned = dict.fromkeys(each.text for entry in before.subtasks for each in entry.success_criteria)
    known = {each.text for each in plan.task_criteria}
    for text in planned:
        if text not in settled and text not in known:
            yield f"“{text}” is not met, and the plan does not hold it any more"


@on(Plan)
def criterion_softened(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """A replan that makes a task criterion easier: without its check, with another one, or only plausible."""
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


@on(Plan)
def plan_without_criteria(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """A plan with nothing by which its result could be refused."""
    if not (plan.subtasks or plan.reply or plan.question):
        yield "the plan has no subtasks, no reply and no question"
    elif not plan.task_criteria:
        yield f"nothing could refuse what {len(plan.subtasks)} subtasks do"


@on(Plan)
def unknown_carried(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """A plan that builds on subtasks which never matched."""
    outcomes = task.outcomes()
    for key in plan.carried:
        outcome = outcomes.get(key)
        if outcome is None or outcome.status != "matched":
            yield f"subtask {key} is carried, and has {'no outcome' if outcome is None else 'failed'}"


@on(Plan)
def plan_uses_blocked(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """A plan that names a tool which it must not use."""
    for planned in plan.subtasks:
        if planned.tool is not None and planned.tool in plan.must_not.tools:
            yield f"the plan uses {planned.tool} and says itself that it must not"


@on(Plan)
def directive_ignored(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """A plan that forgets what the directive of its round blocks, or what it says still stands."""
    if not task.directives or task.cause_kind(envelope) != "PlanDirective":
        return
    directive = task.directives[-1]
    forgotten = [each for each in directive.blocked_tools if each not in plan.must_not.tools]
    forgotten += [
        target for each, target in directive.blocked_targets if (each, target) not in plan.must_not.targets
    ]
    if forgotten:
        yield f"the directive blocks {', '.join(forgotten[:5])}, and the plan does not"
    standing = {outcome.subtask_id for outcome in directive.standing}
    if not standing <= set(plan.carried):
        yield f"{len(standing - set(plan.carried))} matched subtasks still stand and are not carried"


@on(Plan)
def wrong_round(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """A plan that nobody has directed: for a round that has not begun, or a second one for the same round."""
    if plan.round != task.number:
        yield f"a plan for round {plan.round} in round {task.number}"
    elif task.rounds and task.rounds[-1].plan.round == plan.round:
        yield f"a second plan for round {plan.round}"


@on(Plan, nature="anomaly")
def same_plan_again(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """After break_symmetry, word for word a plan that was tried before."""
    if not task.directives or task.directives[-1].directive is not Directive.BREAK_SYMMETRY:
        return
    if task.drafts and task.drafts[-1] in task.drafts[:-1]:
        yield "the planner's model gave a plan that has failed before, though it had to break with it"


@on(Plan)
def too_many_rounds(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """More rounds than there may be replans."""
    if plan.round > task.law.max_replans + 1:
        yield f"round {plan.round} of a task that may be replanned {task.law.max_replans} times"


@on(DispatchManifest)
def manifest_differs(task: TaskNotes, manifest: DispatchManifest, envelope: Envelope) -> Iterator[str]:
    """A manifest that is not the plan: other subtasks, other criteria, other carried ones."""
    plan = _plan(task)
    if plan is None:
        return
    planned = sorted((each.sequence, each.intent, each.success_criteria) for each in _entries(plan))
    listed = sorted((each.sequence, each.intent, each.success_criteria) for each in manifest.subtasks)
    if list(map(str, planned)) != list(map(str, listed)):
        yield f"the manifest lists {len(listed)} subtasks; the plan has {len(planned)}, or others"
    if manifest.task_criteria != plan.task_criteria:
        yield "the manifest has other task criteria than the plan"
    if manifest.carried != plan.carried or manifest.round != plan.round:
        yield "the manifest carries other subtasks than the plan, or is for another round"


def _entries(plan: Plan) -> Sequence[ManifestEntry]:
    return [
        ManifestEntry(
            subtask_id="", sequence=each.sequence, intent=each.intent, success_criteria=each.success_criteria
        )
        for each in plan.subtasks
    ]


def _plan(task: TaskNotes) -> Plan | None:
    return task.round.plan if task.round is not None else None


def _entry(round_notes: RoundNotes | None, subtask_id: str) -> ManifestEntry | None:
    manifest = round_notes.manifest if round_notes is not None else None
    entries = manifest.subtasks if manifest is not None else ()
    return next((each for each in entries if each.subtask_id == subtask_id), None)


@on(SubTask)
def subtask_differs(task: TaskNotes, subtask: SubTask, envelope: Envelope) -> Iterator[str]:
    """A SubTask that is not in the manifest, or says something else, or forgets what the plan forbids."""
    entry = _entry(task.round, subtask.subtask_id)
    if entry is None:
        yield f"subtask {subtask.subtask_id} is not in the manifest of this round"
        return
    if (entry.sequence, entry.intent, entry.success_criteria) != (
        subtask.sequence,
        subtask.intent,
        subtask.success_criteria,
    ):
        yield "the subtask has another intent, group or other criteria than the manifest says"
    plan = _plan(task)
    if plan is not None and subtask.must_not != plan.must_not:
        yield "the subtask is not forbidden what its plan forbids"


@on(SubTask)
def dispatched_twice(task: TaskNotes, subtask: SubTask, envelope: Envelope) -> Iterator[str]:
    """A subtask that is given out a second time."""
    if task.of(subtask.subtask_id).subtask is not None:
        yield f"subtask {subtask.subtask_id} was dispatched before"


@on(SubTask)
def started_too_early(task: TaskNotes, subtask: SubTask, envelope: Envelope) -> Iterator[str]:
    """A group that starts before the groups below it have matched."""
    manifest = task.round.manifest if task.round is not None else None
    if manifest is None:
        return
    outcomes = task.outcomes()
    for entry in manifest.subtasks:
        if entry.sequence >= subtask.sequence:
            continue
        outcome = outcomes.get(entry.subtask_id)
        if outcome is None or outcome.status != "matched":
            yield f"group {subtask.sequence} starts, and group {entry.sequence} has not matched"
            return


RULES: tuple[Rule, ...] = (
    request_altered,
    criterion_dropped,
    criterion_vanished,
    criterion_softened,
    plan_without_criteria,
    unknown_carried,
    plan_uses_blocked,
    directive_ignored,
    wrong_round,
    same_plan_again,
    too_many_rounds,
    manifest_differs,
    subtask_differs,
    dispatched_twice,
    started_too_early,
)
