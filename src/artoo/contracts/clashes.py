"""Parallel subtasks that left one path differently: what one of them did stands, and the other is not done.

R4b and the Auditor read it here alike: an outcome means what became of its work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artoo.contracts.changes import Clash
from artoo.contracts.criteria import NO_FILE_IN_COMMON, Assurance, Mode
from artoo.contracts.execution import CriterionVerdict, DecidedBy, SubTaskOutcome
from artoo.contracts.failure import FailureClass
from artoo.contracts.findings import Found, Reason
from artoo.contracts.roles import Role
from artoo.contracts.shortened import listed

_MOST_NAMED = 4
"""Paths that a reason names; a commit alone leaves as many."""


def clash_verdict(clashes: Sequence[Clash], intents: Mapping[str, str]) -> CriterionVerdict:
    """That these cannot run side by side: the plan has to put them in an order. No tool has failed.

    `intents` of the subtasks, by their ids: what a reader knows them by.
    """
    kept = dict.fromkeys(intents.get(each.stands, "") for each in clashes)
    paths = listed([each.path for each in clashes], _MOST_NAMED)
    reason = Reason(found=Found.CONFLICT, subject=paths, said="; ".join(filter(None, kept)))
    return CriterionVerdict(
        criterion=NO_FILE_IN_COMMON,
        mode=Mode.VERIFIABLE,
        verdict="fail",
        failure_class=FailureClass.LOGICAL,
        evidence=reason.text,
        reason=reason,
        decided_by=DecidedBy.FACT,
        accountable=Role.PLANNER,
        blameless=True,
    )


def as_joined(outcome: SubTaskOutcome, clashes: Sequence[Clash], intents: Mapping[str, str]) -> SubTaskOutcome:
    """The outcome after the join: one that matched has failed, if some of its work was lost to an earlier one's.

    What was found of its criteria was found of work that is not there any more.
    """
    lost = [each for each in clashes if each.lost == outcome.subtask_id]
    if not lost or outcome.status == "failed":
        return outcome
    clash = clash_verdict(lost, intents)
    verdicts = tuple(
        clash.model_copy(
            update={
                "criterion": each.criterion,
                "mode": each.mode,
                "attempts": each.attempts,
                "failed_attempts": each.attempts,
            }
        )
        for each in outcome.criteria_verdicts
    )
    return outcome.model_copy(
        update={
            "status": "failed",
            "failure_reason": clash.evidence,
            "criteria_verdicts": verdicts or (clash,),
            "assurance": Assurance.UNVERIFIED,
            "open": (),
        }
    )
