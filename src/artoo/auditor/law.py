"""The control law once more, written from its definition and not from its implementation.

The Auditor recomputes every decision. It may not import `control`: with that code it would make the same mistake.
Sources: SPEC section 4; paper, sections 5.1 to 5.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from artoo.contracts.criteria import Mode
from artoo.contracts.execution import CallStatus, CriterionVerdict, SubTaskOutcome
from artoo.contracts.failure import FailureClass
from artoo.contracts.solution import Directive, ReplanRequest, StoppedBy

TOLERANCE = 1e-6
"""Two figures of the law that differ by less are the same."""


@dataclass(frozen=True, slots=True)
class Law:
    """What a task is held to: hyperparameters and limits, v0.8's defaults. Units as in SPEC section 4."""

    alpha: float = 0.6
    beta: float = 0.3
    lambda_: float = 0.4
    w1: float = 0.6
    w2: float = 0.4
    epsilon: float = 0.1
    delta: float = 0.3
    rho: float = 0.5
    theta: float = 0.8
    max_replans: int = 3
    max_retries: int = 2
    kill_after: int = 2
    exhausted_after: int = 0
    paper_gradient: bool = False
    most_calls: int | None = 100
    most_tokens: int | None = 1_000_000


class Terms(NamedTuple):
    """D, P and Ω of one round."""

    distance: float
    implausibility: float
    cost: float


class Counted(NamedTuple):
    """What the verdicts of a round add up to."""

    distance: float
    criteria: int
    logical: int
    environmental: int

    @property
    def implausibility(self) -> float:
        """The logical share of the failures, 0 without any."""
        failures = self.logical + self.environmental
        return self.logical / failures if failures else 0.0


class Ruling(NamedTuple):
    """What the law says about a round, why a task ends if it does, and how many rounds in a row were worse."""

    directive: Directive
    stopped_by: StoppedBy | None
    worsening: int


def loss(law: Law, terms: Terms) -> float:
    """L: what is missing, how wrong the approach is (less so the more was spent), and what was spent."""
    approach = law.beta * (1.0 - terms.cost) * terms.implausibility
    return law.alpha * terms.distance + approach + law.lambda_ * terms.cost


def gradients(law: Law, now: Terms, before: Terms | None) -> tuple[float, float]:
    """∇L at equal cost, and the paper's. Both 0 in the first round."""
    if before is None:
        return 0.0, 0.0
    at_equal_cost = loss(law, now) - loss(law, before._replace(cost=now.cost))
    return at_equal_cost, loss(law, now) - loss(law, before)


def cost_bounds(law: Law, replans: int) -> tuple[float, float]:
    """The least and the most that Ω can be after so many replans, whatever the time."""
    share = min(1.0, replans / law.max_replans) if law.max_replans else float(replans > 0)
    return law.w1 * share, law.w1 * share + law.w2


def counted(request: ReplanRequest) -> Counted:
    """The verdicts of all outcomes and of the task, and what never ran."""
    verdicts = [
        *(each for outcome in request.outcomes for each in outcome.criteria_verdicts),
        *request.task_verdicts,
    ]
    failing = [verdict for verdict in verdicts if verdict.verdict == "fail"]
    missed = list(_misses(request))
    bare = sum(outcome.status == "failed" and not outcome.criteria_verdicts for outcome in request.outcomes)
    missing = request.not_run + bare
    total = len(verdicts) + missing
    return Counted(
        distance=(sum(map(_weight, failing)) + missing) / total if total else 1.0,
        criteria=total,
        logical=missed.count(FailureClass.LOGICAL),
        environmental=missed.count(FailureClass.ENVIRONMENTAL),
    )


def _misses(request: ReplanRequest) -> Iterator[FailureClass | None]:
    """The class of each attempt that missed what is unmet at last, but for those whose calls were turned away."""
    calls = [call for outcome in request.outcomes for call in outcome.tool_calls]
    ran = {each for call in calls if call.status is not CallStatus.REFUSED for each in call.identity}
    judged = [(each, outcome.gap_trajectory) for outcome in request.outcomes for each in outcome.criteria_verdicts]
    failing = [(verdict, trajectory) for verdict, trajectory in judged if verdict.verdict == "fail"]
    texts = {verdict.criterion for verdict, _ in failing}
    failing += [
        (each, ()) for each in request.task_verdicts if each.verdict == "fail" and each.criterion not in texts
    ]
    for verdict, trajectory in failing:
        if not verdict.identities or ran & set(verdict.identities):
            yield verdict.failure_class
            yield from (each.failure_class for each in trajectory[:-1] if verdict.criterion in each.unmet_criteria)


def _weight(failing: CriterionVerdict) -> float:
    if failing.mode is Mode.VERIFIABLE:
        return 1.0
    return min(1.0, failing.failed_attempts / max(1, failing.attempts))


def ruling(law: Law, terms: Terms, gradient: float, request: ReplanRequest | None, worsening: int) -> Ruling:
    """The decision for a round that was not accepted and not stopped. `request` None: the plan was refused twice.

    `worsening`: rounds in a row before this one whose loss rose by more than ε.
    """
    worsening = worsening + 1 if gradient > law.epsilon + TOLERANCE else 0
    if terms.cost >= law.theta:
        return Ruling(Directive.ABANDON, StoppedBy.COST, worsening)
    if terms.distance <= law.delta and request is not None and may_succeed(request):
        return Ruling(Directive.SUCCESS, None, worsening)
    if worsening >= law.kill_after:
        return Ruling(Directive.ABANDON, StoppedBy.DIVERGENCE, worsening)
    if request is not None and request.recommendation == "abandon":
        return Ruling(Directive.ABANDON, StoppedBy.REPLANS, worsening)
    return Ruling(_way_on(law, terms, gradient), None, worsening)


def _way_on(law: Law, terms: Terms, gradient: float) -> Directive:
    plateau = abs(gradient) < law.epsilon
    if terms.implausibility > law.rho:
        return Directive.BREAK_SYMMETRY if plateau else Directive.CHANGE_APPROACH
    return Directive.CHANGE_PATH if plateau else Directive.REFINE


def may_succeed(request: ReplanRequest) -> bool:
    """At least one subtask matched, no task criterion is unmet, and no evidence contradicts what was claimed."""
    matched = any(outcome.status == "matched" for outcome in request.outcomes)
    unmet = any(verdict.verdict == "fail" for verdict in request.task_verdicts)
    return matched and not unmet and not _contradicted(request)


def _contradicted(request: ReplanRequest) -> bool:
    verdicts = [
        *(each for outcome in request.outcomes for each in outcome.criteria_verdicts),
        *request.task_verdicts,
    ]
    return any(verdict.verdict == "fail" and verdict.contradicted for verdict in verdicts)


def suspicious(law: Law, terms: Terms, gradient: float) -> bool:
    """The paper's cell 6: the loss falls although the approach is wrong."""
    going_on = terms.cost < law.theta and terms.distance > law.delta
    return going_on and gradient <= -law.epsilon and terms.implausibility > law.rho


def merged(outcomes: Iterable[SubTaskOutcome]) -> str:
    """The outputs of the matched outcomes: one as it is, several each under its intent."""
    matched = [each for each in outcomes if each.status == "matched"]
    if len(matched) == 1:
        return matched[0].output.strip()
    parts = ((each.intent.strip(), each.output.strip()) for each in matched)
    return "\n\n".join(f"{intent}\n{output}" for intent, output in parts if output)
