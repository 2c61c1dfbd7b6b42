"""From verdicts to the terms of the loss: what R7 measures (SPEC section 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from artoo.contracts.criteria import Mode
from artoo.contracts.execution import CallStatus, CriterionVerdict, SubTaskOutcome, identities_of
from artoo.contracts.failure import FailureClass
from artoo.contracts.solution import ReplanRequest
from artoo.control.decision import Evidence
from artoo.control.loss import CriterionGap, distance, implausibility


@dataclass(frozen=True, slots=True)
class Gap:
    """One round measured: D, the two failure counts behind P, and what may forbid a success."""

    distance: float
    logical: int
    environmental: int
    criteria: int
    evidence: Evidence

    @property
    def implausibility(self) -> float:
        """P in [0, 1]."""
        return implausibility(self.logical, self.environmental)

    @property
    def failure_class(self) -> Literal["logical", "environmental", "mixed"]:
        """`mixed` on a tie: no majority says that the approach is wrong."""
        if self.logical == self.environmental:
            return "mixed"
        return "logical" if self.logical > self.environmental else "environmental"


WRONG_APPROACH = Gap(1.0, 1, 0, 1, Evidence(matched_subtasks=0))
"""A twice refused plan: D = 1, P = 1."""


def verdicts_of(
    outcomes: Sequence[SubTaskOutcome], task_verdicts: Sequence[CriterionVerdict]
) -> tuple[CriterionVerdict, ...]:
    """Every verdict of a round: those of its subtasks, then those of the task."""
    return (*(verdict for outcome in outcomes for verdict in outcome.criteria_verdicts), *task_verdicts)


def measure(request: ReplanRequest) -> Gap:
    """Subtask and task criteria together; what never ran failed in D and is absent from P.

    So is what failed only because the harness turned calls away: that says nothing about the approach. P counts
    every attempt that missed a criterion which is unmet at last, not the last attempt alone.
    """
    verdicts = verdicts_of(request.outcomes, request.task_verdicts)
    gaps = [gap_of(verdict) for verdict in verdicts]
    gaps += [CriterionGap(failed=True, verifiable=True)] * request.not_run
    failed = [verdict for verdict in verdicts if verdict.verdict == "fail"]
    classes = _classes(request)
    bare = sum(outcome.status == "failed" and not outcome.criteria_verdicts for outcome in request.outcomes)
    gaps += [CriterionGap(failed=True, verifiable=True)] * bare
    return Gap(
        distance=distance(gaps) if gaps else 1.0,
        logical=classes[FailureClass.LOGICAL],
        environmental=classes[FailureClass.ENVIRONMENTAL],
        criteria=len(gaps),
        evidence=Evidence(
            matched_subtasks=sum(outcome.status == "matched" for outcome in request.outcomes),
            unmet_task_criteria=sum(verdict.verdict == "fail" for verdict in request.task_verdicts),
            contradicted=any(verdict.contradicted for verdict in failed),
        ),
    )


def _classes(request: ReplanRequest) -> Counter[FailureClass | None]:
    """How often what is unmet was missed, by the class of each miss. The task's verdict on what a subtask's own
    loop has missed already is the same miss.
    """
    calls = (call for outcome in request.outcomes for call in outcome.tool_calls)
    ran = identities_of(call for call in calls if call.status is not CallStatus.REFUSED)
    found = Counter[FailureClass | None]()
    own = {each.criterion for each in verdicts_of(request.outcomes, ()) if each.verdict == "fail"}
    whole = [verdict for verdict in request.task_verdicts if verdict.criterion not in own]
    judged = [(outcome.gap_trajectory, outcome.criteria_verdicts) for outcome in request.outcomes]
    for trajectory, verdicts in (*judged, ((), whole)):
        for verdict in verdicts:
            if verdict.verdict == "fail" and not (verdict.identities and ran.isdisjoint(verdict.identities)):
                earlier = (point for point in trajectory[:-1] if verdict.criterion in point.unmet_criteria)
                found.update((*(point.failure_class for point in earlier), verdict.failure_class))
    return found


def gap_of(verdict: CriterionVerdict) -> CriterionGap:
    """Return what a verdict adds to D."""
    return CriterionGap(
        failed=verdict.verdict == "fail",
        verifiable=verdict.mode is Mode.VERIFIABLE,
        failed_attempts=verdict.failed_attempts,
        attempts=verdict.attempts,
    )
