"""What a clash of parallel subtasks means for their outcomes."""

from __future__ import annotations

from artoo.contracts.changes import Clash
from artoo.contracts.clashes import as_joined, clash_verdict
from artoo.contracts.criteria import NO_FILE_IN_COMMON, Assurance, Mode
from artoo.contracts.execution import CriterionVerdict, DecidedBy, SubTaskOutcome
from artoo.contracts.findings import Found, Reason

INTENTS = {"1": "write the red one", "2": "write the blue one"}
CLASH = Clash(path="/p/a.txt", reason="1 and 2 left it differently", stands="1", lost="2")
MET = CriterionVerdict(
    criterion="it is blue", verdict="pass", decided_by=DecidedBy.JUDGEMENT, failed_attempts=1, attempts=2
)


def outcome(name: str, *verdicts: CriterionVerdict, status: str = "matched") -> SubTaskOutcome:
    return SubTaskOutcome.model_validate(
        {
            "subtask_id": name,
            "parent_task_id": "t",
            "status": status,
            "criteria_verdicts": verdicts,
            "assurance": Assurance.JUDGED,
            "open": ("it is nice",),
        }
    )


def test_lost_work_is_not_done() -> None:
    """What was found of each of its criteria is void, in every attempt, and the reason names path and winner."""
    lost = as_joined(outcome("2", MET), (CLASH,), INTENTS)
    assert (lost.status, lost.assurance, lost.open, lost.clashed) == ("failed", Assurance.UNVERIFIED, (), True)
    (verdict,) = lost.criteria_verdicts
    assert (verdict.criterion, verdict.verdict, verdict.mode) == ("it is blue", "fail", Mode.PLAUSIBLE)
    assert (verdict.failed_attempts, verdict.attempts, verdict.blameless) == (2, 2, True)
    why = Reason(found=Found.CONFLICT, subject="/p/a.txt", said="write the red one")
    assert verdict.reason == why and lost.failure_reason == verdict.evidence == why.text


def test_a_part_without_criteria_of_its_own_fails_as_well() -> None:
    """It has one verdict then: that it cannot run beside the other."""
    lost = as_joined(outcome("2"), (CLASH,), INTENTS)
    assert [each.criterion for each in lost.criteria_verdicts] == [NO_FILE_IN_COMMON]


def test_what_stands_or_had_failed_before_is_left_as_it_was() -> None:
    """The winner has lost nothing; who failed for a reason of its own keeps that."""
    failed = outcome("2", MET, status="failed")
    assert as_joined(outcome("1", MET), (CLASH,), INTENTS) == outcome("1", MET) and not failed.clashed
    assert as_joined(failed, (CLASH,), INTENTS) == failed


def test_all_clashes_of_a_round_are_one_verdict() -> None:
    """With the paths, few of them, and each winner once. A log that names none still says which path it was."""
    many = [CLASH.model_copy(update={"path": f"/p/{name}.txt"}) for name in "abcdef"]
    assert clash_verdict(many, INTENTS).evidence.count("write the red one") == 1
    assert "6 paths" in clash_verdict(many, INTENTS).evidence
    unnamed = clash_verdict((Clash(path="/p/a.txt", reason="one and two"),), INTENTS)
    assert unnamed.evidence.endswith("/p/a.txt stands")
