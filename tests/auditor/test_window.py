"""What a report counts: who answers for what failed, and how gaps moved."""

from __future__ import annotations

from tapes import Tape

from artoo.auditor.window import Window
from artoo.contracts.execution import GapPoint, SubTaskOutcome
from artoo.contracts.failure import FailureClass
from artoo.contracts.memory import MemoryRead
from artoo.contracts.roles import Role
from artoo.contracts.solution import Directive, FinalResult, OutcomeSummary, RoleFailure, StoppedBy, UnmetCriterion


def test_each_failure_has_a_role_that_answers_for_it(tapes: dict[str, Tape]) -> None:
    """Appendix C in the report: a broken rule is its sender's, an unmet criterion its role's, a divergence R7's,
    a memory that cannot be read R5's, a message that was missed R6's, a role that failed its own."""
    tape = tapes["corrected"]
    window = Window(tape.messages[0].at)
    unmet = UnmetCriterion(criterion="c", reason="r", failure_class=FailureClass.LOGICAL, accountable=Role.EXECUTOR)
    ending = tape.envelope(FinalResult)
    given_up = {"directive": Directive.ABANDON, "stopped_by": StoppedBy.DIVERGENCE, "unmet": (unmet,)}
    window.observe(ending._replace(payload=tape.get(FinalResult).model_copy(update=given_up)))
    lost = MemoryRead(space="s", entity="e", error="gone")
    window.observe(ending._replace(payload=lost, sender=Role.PLANNER))
    failed = RoleFailure(role=Role.PERCEIVER, stopped_by=StoppedBy.NO_MODEL, reason="r")
    window.observe(ending._replace(payload=failed, sender=Role.PERCEIVER))
    window.lost(3)
    forged = tape.head(OutcomeSummary, cause_id="nobody")
    for finding in forged.findings():
        window.add(finding)
    report = window.report("on-demand", ending.at)
    one_each = {"executor", "solver", "memory", "perceiver", "auditor"}
    assert {who for who, count in report.accountable.items() if count == 1} >= one_each - {"solver"}
    assert report.accountable["solver"] >= 1 and report.accountable["meta_validator"] >= 1


def test_how_gaps_move_over_corrections_is_counted(tapes: dict[str, Tape]) -> None:
    """A corrected subtask counts as improving, steady or worsening, by its unmet criteria from first to last."""
    tape = tapes["corrected"]
    window = Window(tape.messages[0].at)
    for scores in ((0.0, 1.0), (0.5, 0.5), (0.5, 0.0), (0.5,)):
        points = tuple(GapPoint(attempt=number, score=score) for number, score in enumerate(scores, 1))
        moved = tape.get(SubTaskOutcome).model_copy(update={"gap_trajectory": points})
        window.observe(tape.envelope(SubTaskOutcome)._replace(payload=moved))
    trends = window.report("on-demand", tape.messages[-1].at).correction_trends
    assert trends == {"improving": 1, "steady": 1, "worsening": 1}
