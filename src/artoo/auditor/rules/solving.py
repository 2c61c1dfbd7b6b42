"""R7: every decision follows from its figures, the figures from the verdicts, the directive from the decision."""

from __future__ import annotations

from collections.abc import Iterator

from artoo.auditor import law as control
from artoo.auditor.law import TOLERANCE, Counted, Terms
from artoo.auditor.notes import TaskNotes
from artoo.auditor.rules.rule import Rule, on
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CallStatus, SubTaskOutcome
from artoo.contracts.solution import Decided, Directive, PlanDirective, ReplanRequest

_ENDS = (Directive.ACCEPT, Directive.SUCCESS, Directive.ABANDON)
_BLOCKING = (Directive.BREAK_SYMMETRY, Directive.CHANGE_APPROACH)
_KEEPING = (Directive.CHANGE_PATH, Directive.REFINE)
_REFUSED = Counted(1.0, 1, 1, 0)
"""A twice refused plan: D = 1, P = 1."""


def _request(task: TaskNotes, envelope: Envelope) -> ReplanRequest | None:
    return task.replans.get(envelope.cause_id or "")


def _due(task: TaskNotes, envelope: Envelope) -> Counted | None:
    """What the decision had to be computed from, when its cause says so."""
    kind = task.cause_kind(envelope)
    request = _request(task, envelope)
    if request is not None:
        return control.counted(request)
    if kind == "PlanRefused":
        return _REFUSED
    return Counted(0.0, 0, 0, 0) if kind == "OutcomeSummary" else None


def terms_of(decided: Decided) -> Terms:
    """The three terms as the decision states them."""
    return Terms(decided.loss.D, decided.loss.P, decided.loss.Omega)


@on(Decided)
def distance_differs(task: TaskNotes, decided: Decided, envelope: Envelope) -> Iterator[str]:
    """A decision whose D is not what the verdicts add up to."""
    due = _due(task, envelope)
    if due is not None and abs(decided.loss.D - due.distance) > TOLERANCE:
        yield f"D is {due.distance:.3f} by the verdicts; the decision says {decided.loss.D:.3f}"


@on(Decided)
def implausibility_differs(task: TaskNotes, decided: Decided, envelope: Envelope) -> Iterator[str]:
    """A decision whose P, or the failures behind it, are not what the verdicts add up to."""
    due = _due(task, envelope)
    own = Counted(0.0, 0, decided.logical_failures, decided.environmental_failures)
    if abs(decided.loss.P - own.implausibility) > TOLERANCE:
        yield f"P is {own.implausibility:.3f} by its own failures; the decision says {decided.loss.P:.3f}"
    if due is not None and (own.logical, own.environmental) != (due.logical, due.environmental):
        said, real = f"{own.logical} + {own.environmental}", f"{due.logical} + {due.environmental}"
        yield f"{real} failures are logical and environmental; the decision says {said}"


@on(Decided)
def cost_differs(task: TaskNotes, decided: Decided, envelope: Envelope) -> Iterator[str]:
    """A decision whose Ω cannot follow from its replans and its time."""
    least, most = control.cost_bounds(task.law, len(task.directives))
    if decided.elapsed_ms is not None and task.budget_ms is not None:
        share = min(1.0, max(0.0, decided.elapsed_ms) / max(1, round(task.budget_ms)))
        least = most = least + task.law.w2 * share
    if not least - TOLERANCE <= decided.loss.Omega <= most + TOLERANCE:
        yield f"Ω is {least:.3f} to {most:.3f} in round {decided.round}; the decision says {decided.loss.Omega:.3f}"


@on(Decided)
def loss_differs(task: TaskNotes, decided: Decided, envelope: Envelope) -> Iterator[str]:
    """A decision whose L does not follow from its own D, P and Ω."""
    due = control.loss(task.law, terms_of(decided))
    if abs(decided.loss.L - due) > TOLERANCE:
        yield f"L is {due:.4f} by its own terms; the decision says {decided.loss.L:.4f}"


@on(Decided)
def gradient_differs(task: TaskNotes, decided: Decided, envelope: Envelope) -> Iterator[str]:
    """A decision whose gradients do not follow from this round and the one before."""
    equal, paper = control.gradients(task.law, terms_of(decided), task.before)
    deciding = paper if task.law.paper_gradient else equal
    for name, said, due in (
        ("∇L at equal cost", decided.grad_equal_cost, equal),
        ("the paper's ∇L", decided.grad_paper, paper),
        ("the deciding ∇L", decided.grad_l, deciding),
    ):
        if abs(said - due) > TOLERANCE:
            yield f"{name} is {due:+.4f}; the decision says {said:+.4f}"


@on(Decided)
def decision_against_the_law(task: TaskNotes, decided: Decided, envelope: Envelope) -> Iterator[str]:
    """A decision other than the one that the cascade gives for these figures."""
    due = _directive_due(task, decided, envelope)
    if due is not None and decided.directive is not due:
        yield f"the law says {due}; the decision is {decided.directive}"


def _is_open(task: TaskNotes, envelope: Envelope) -> bool:
    """Whether R4b's summary holds a criterion that nothing decided."""
    summary = task.summaries.get(envelope.cause_id or "")
    if summary is None:
        return False
    verdicts = [verdict for outcome in summary.outcomes for verdict in outcome.criteria_verdicts]
    return any(verdict.verdict == "open" for verdict in (*verdicts, *summary.task_verdicts))


def _directive_due(task: TaskNotes, decided: Decided, envelope: Envelope) -> Directive | None:
    kind, request = task.cause_kind(envelope), _request(task, envelope)
    if kind == "OutcomeSummary":
        return Directive.SUCCESS if _is_open(task, envelope) else Directive.ACCEPT
    if request is not None and request.stopped_by is not None:
        return Directive.ABANDON
    if request is not None or kind == "PlanRefused":
        terms, stopped = terms_of(decided), _stopped_before(task)
        if stopped:
            return Directive.ABANDON
        may = len(task.directives) < task.law.max_replans and not _exhausted(task, decided)
        ruled = control.ruling(task.law, terms, decided.grad_l, request, task.worsening)
        return ruled.directive if may or ruled.directive in _ENDS else Directive.ABANDON
    return Directive.ABANDON


def _exhausted(task: TaskNotes, decided: Decided) -> bool:
    """Whether a task may have ended for want of another approach: where that is set, and something is blocked.

    Which tools are the last that may not be blocked, the Auditor does not know.
    """
    blocked = bool(task.directives and task.directives[-1].blocked_tools)
    return decided.exhausted and blocked and task.law.exhausted_after > 0


def _stopped_before(task: TaskNotes) -> bool:
    """Whether the last thing that R4b said was that work was stopped."""
    last = next(reversed(task.replans.values()), None)
    return last is not None and last.stopped_by is not None


@on(Decided)
def suspicion_differs(task: TaskNotes, decided: Decided, envelope: Envelope) -> Iterator[str]:
    """A decision that hides, or invents, the paper's cell 6: a loss that falls on a wrong approach."""
    due = control.suspicious(task.law, terms_of(decided), decided.grad_l)
    if decided.suspicious != due:
        yield f"the decision is {'' if due else 'not '}suspicious, and says otherwise"


@on(Decided, nature="anomaly")
def suspicious_improvement(task: TaskNotes, decided: Decided, envelope: Envelope) -> Iterator[str]:
    """The paper's cell 6: the loss falls although the approach is wrong. R7 marks it for the operator."""
    if decided.suspicious:
        yield f"round {decided.round}: ∇L {decided.grad_l:+.3f} with P {decided.loss.P:.2f}"


@on(Decided)
def decided_out_of_turn(task: TaskNotes, decided: Decided, envelope: Envelope) -> Iterator[str]:
    """A decision for another round than the one under way."""
    if decided.round != task.number:
        yield f"a decision for round {decided.round} in round {task.number}"


@on(Decided)
def decided_twice(task: TaskNotes, decided: Decided, envelope: Envelope) -> Iterator[str]:
    """A second decision about the same message."""
    if any(cause == envelope.cause_id for _, cause in task.decided):
        yield f"{task.cause_kind(envelope)} {envelope.cause_id} was decided about before"


@on(Decided, nature="anomaly")
def ggs_thrashing(task: TaskNotes, decided: Decided, envelope: Envelope) -> Iterator[str]:
    """break_symmetry in consecutive rounds with D not falling: replanning moves, and the result does not."""
    if decided.directive is not Directive.BREAK_SYMMETRY or not task.directives:
        return
    before = task.directives[-1]
    if before.directive is Directive.BREAK_SYMMETRY and decided.loss.D >= before.loss.D - TOLERANCE:
        moved = f"D {before.loss.D:.2f} → {decided.loss.D:.2f}"
        yield f"break_symmetry in rounds {decided.round - 1} and {decided.round}, {moved}"


@on(Decided, nature="anomaly")
def steady_distance(task: TaskNotes, decided: Decided, envelope: Envelope) -> Iterator[str]:
    """change_path or refine in consecutive rounds with D not falling: the method is kept to no effect."""
    if decided.directive not in _KEEPING or not task.directives:
        return
    before = task.directives[-1]
    if before.directive in _KEEPING and decided.loss.D >= before.loss.D - TOLERANCE:
        moved = f"D {before.loss.D:.2f} → {decided.loss.D:.2f}"
        rounds = f"in rounds {decided.round - 1} and {decided.round}"
        yield f"{before.directive} and {decided.directive} {rounds}, {moved}"


@on(PlanDirective)
def directive_undecided(task: TaskNotes, directive: PlanDirective, envelope: Envelope) -> Iterator[str]:
    """A directive without a decision, or other than the decision."""
    found = next((decided for decided, cause in reversed(task.decided) if cause == envelope.cause_id), None)
    if found is None:
        yield f"{directive.directive} without a decision about what it answers"
    elif directive.directive is not found.directive:
        yield f"the decision is {found.directive}; the directive says {directive.directive}"


@on(PlanDirective)
def directive_after_the_end(task: TaskNotes, directive: PlanDirective, envelope: Envelope) -> Iterator[str]:
    """A directive that goes on after a decision that ends the task."""
    if directive.directive in _ENDS or directive.directive is Directive.INIT:
        yield f"{directive.directive} directs nobody"
    elif task.decided and task.decided[-1][0].directive in _ENDS:
        yield f"{directive.directive} after the decision to {task.decided[-1][0].directive}"


@on(PlanDirective)
def directive_figures_differ(task: TaskNotes, directive: PlanDirective, envelope: Envelope) -> Iterator[str]:
    """A directive with other figures than the decision, or out of turn."""
    if not task.decided:
        return
    decided = task.decided[-1][0]
    wrong = {
        "the loss": directive.loss != decided.loss,
        "∇L": directive.grad_l != decided.grad_l,
        "the budget pressure": abs(directive.budget_pressure - decided.loss.Omega) > TOLERANCE,
        "the failure class": directive.failure_class != _class(decided),
        "the suspicion": directive.suspicious != decided.suspicious,
        "the round": directive.round != task.number + 1,
        "the previous directive": directive.prev_directive is not _previous(task),
    }
    named = [name for name, differs in wrong.items() if differs]
    if named:
        yield f"the directive says otherwise than the decision about {', '.join(named)}"


def _class(decided: Decided) -> str:
    if decided.logical_failures == decided.environmental_failures:
        return "mixed"
    return "logical" if decided.logical_failures > decided.environmental_failures else "environmental"


def _previous(task: TaskNotes) -> Directive:
    return task.directives[-1].directive if task.directives else Directive.INIT


@on(PlanDirective)
def blocked_without_cause(task: TaskNotes, directive: PlanDirective, envelope: Envelope) -> Iterator[str]:
    """A directive that blocks tools though no approach was wrong, or tools and targets that did not fail."""
    last = task.directives[-1] if task.directives else None
    new = [each for each in directive.blocked_tools if last is None or each not in last.blocked_tools]
    targets = [each for each in directive.blocked_targets if last is None or each not in last.blocked_targets]
    if not new and not targets:
        return
    if new and directive.directive not in _BLOCKING:
        yield f"{directive.directive} blocks {', '.join(new[:5])}"
    cited = {identity for outcome in directive.failed for identity in _cited(outcome)}
    innocent = [identity for identity in new if identity not in cited]
    tried = {
        (each, call.target) for outcome in directive.failed for call in outcome.tool_calls for each in call.identity
    }
    innocent += [f"{each} on {target}" for each, target in targets if (each, target) not in tried]
    if innocent:
        yield f"{', '.join(innocent[:5])} is blocked and did not fail"


def _cited(outcome: SubTaskOutcome) -> Iterator[str]:
    """Yield what failing verdicts cite and what failed with an error of its own; nothing after a `cannot`."""
    failing = [verdict for verdict in outcome.criteria_verdicts if verdict.verdict == "fail"]
    if outcome.hopeless or (failing and all(verdict.blameless for verdict in failing)):
        return
    for verdict in failing:
        yield from verdict.identities
    for call in outcome.tool_calls:
        if call.status is CallStatus.ERROR:
            yield from call.identity


@on(PlanDirective)
def suggestion_blocked(task: TaskNotes, directive: PlanDirective, envelope: Envelope) -> Iterator[str]:
    """A directive that suggests a tool which it blocks."""
    named = {each.partition(" on ")[0] for each in directive.suggested_alternatives}
    if both := sorted(named & set(directive.blocked_tools)):
        yield f"{', '.join(both[:5])} is suggested and blocked"


@on(PlanDirective)
def blocks_forgotten(task: TaskNotes, directive: PlanDirective, envelope: Envelope) -> Iterator[str]:
    """A directive that no longer blocks what an earlier one blocked: blocks add up over the task."""
    if not task.directives:
        return
    last = task.directives[-1]
    gone = [*last.blocked_tools, *(f"{target!r} for {tool}" for tool, target in last.blocked_targets)]
    now = {*directive.blocked_tools, *(f"{target!r} for {tool}" for tool, target in directive.blocked_targets)}
    if forgotten := [each for each in gone if each not in now]:
        yield f"{', '.join(forgotten[:5])} was blocked before and is not now"


@on(PlanDirective)
def directive_outcomes_differ(task: TaskNotes, directive: PlanDirective, envelope: Envelope) -> Iterator[str]:
    """A directive that calls a failed subtask standing or what was done failed, or one with outcomes that no
    validator published. What nothing but its author's word says need not stand.
    """
    published = task.outcomes()
    for outcome in directive.standing:
        if not outcome.done or published.get(outcome.subtask_id) != outcome:
            yield f"subtask {outcome.subtask_id} does not stand as the directive says"
    for outcome in directive.failed:
        shown = outcome.confirmed or any(call.changed_something for call in outcome.tool_calls)
        if (outcome.done and shown) or published.get(outcome.subtask_id) != outcome:
            yield f"subtask {outcome.subtask_id} did not fail as the directive says"


RULES: tuple[Rule, ...] = (
    distance_differs,
    implausibility_differs,
    cost_differs,
    loss_differs,
    gradient_differs,
    decision_against_the_law,
    suspicion_differs,
    suspicious_improvement,
    decided_out_of_turn,
    decided_twice,
    ggs_thrashing,
    steady_distance,
    directive_undecided,
    directive_after_the_end,
    directive_figures_differ,
    blocked_without_cause,
    blocks_forgotten,
    suggestion_blocked,
    directive_outcomes_differ,
)
