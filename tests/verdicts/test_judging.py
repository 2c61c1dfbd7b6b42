"""Verdicts, who answers for them, and the correction that follows."""

from __future__ import annotations

from typing import cast

import pytest

from artoo.contracts.criteria import Criterion, FileMatches, Mode, OutputMatches
from artoo.contracts.execution import CallStatus, DecidedBy, ExecutionResult, GapPoint, ToolCall
from artoo.contracts.failure import FailureClass
from artoo.contracts.findings import BLAMES_NOBODY, Found, Reason
from artoo.contracts.roles import Role
from artoo.evidence.facts import Fact
from artoo.ports.evidence import EvidenceSource, FileView
from artoo.verdicts import judging
from artoo.verdicts.checks import CheckResult
from artoo.verdicts.judging import checked, correction_for
from records import call, result

ONE = [Criterion(text="c")]


@pytest.mark.parametrize(
    ("of", "failure_class"),
    [
        (result(call(said="cat: a: No such file or directory")), FailureClass.ENVIRONMENTAL),
        (
            result(call(reason="there is no a.txt; similar names: b.txt", tool="read_file")),
            FailureClass.ENVIRONMENTAL,
        ),
        (result(call(said="Permission denied")), FailureClass.ENVIRONMENTAL),
        (result(call(CallStatus.TIMEOUT)), FailureClass.ENVIRONMENTAL),
        (result(infrastructure="timeout"), FailureClass.ENVIRONMENTAL),
        (
            result(call(CallStatus.REFUSED, reason="there is no tool 'x'; the tools are: shell")),
            FailureClass.LOGICAL,
        ),
        (result(call(said="syntax error near `)'")), FailureClass.LOGICAL),
        (result(call(said="bash: foo: command not found")), FailureClass.LOGICAL),
        (result(call(CallStatus.OK, said="warning: no such file")), FailureClass.LOGICAL),
        (result(), FailureClass.LOGICAL),
    ],
)
def test_the_class_of_a_failure(of: ExecutionResult, failure_class: FailureClass) -> None:
    """What the world lacks is environmental, in our own tools' words too; what was done wrongly is logical."""
    assert judging.class_of_failure(of) is failure_class


def test_giving_up_fails_every_criterion() -> None:
    """All criteria fail with the reason, the class and the identities of the calls that went wrong."""
    criteria = [Criterion(text="a"), Criterion(text="b", mode=Mode.VERIFIABLE)]
    bad = call(said="No such file or directory")
    verdicts = judging.failed_outright(
        criteria, result(call(CallStatus.OK, tool="glob"), bad, status="failed", output="no")
    )
    assert [each.verdict for each in verdicts] == ["fail", "fail"]
    assert {(each.evidence, each.failure_class, each.identities) for each in verdicts} == {
        ("no", FailureClass.ENVIRONMENTAL, ("shell:x",))
    }
    assert {each.accountable for each in verdicts} == {Role.PLANNER}
    late = result(status="failed").model_copy(update={"infrastructure": "timeout: more than 240 s"})
    (verdict,) = judging.failed_outright(ONE, late)
    assert (verdict.evidence, verdict.reason) == (
        "timeout: more than 240 s",
        Reason(found=Found.OUT_OF_TIME, said="timeout: more than 240 s"),
    )


def test_a_check_decides_alone() -> None:
    """A passed check has no class and cites nobody; a failed one is the executor's when logical."""
    good = judging.from_check(ONE[0], CheckResult(True, "seen"))
    assert (good.verdict, good.failure_class, good.identities, good.decided_by) == (
        "pass",
        None,
        (),
        DecidedBy.CHECK,
    )
    bad = judging.from_check(ONE[0], CheckResult(False, "gone", FailureClass.LOGICAL, ("shell:x",)))
    assert (bad.verdict, bad.identities, bad.accountable) == ("fail", ("shell:x",), Role.EXECUTOR)


def test_failures_are_counted_over_attempts() -> None:
    """k of N: failures so far of attempts so far, also for a verdict that passes at last."""
    fails, passes = judging.from_fact(ONE[0], Fact("no")), judging.from_check(ONE[0], CheckResult(True, ""))
    missed, met = (GapPoint(attempt=1, score=0, unmet_criteria=texts) for texts in ((ONE[0].text,), ()))
    counted = [
        judging.counted(verdict, len(before) + 1, before)
        for verdict, before in ((fails, []), (passes, [missed]), (fails, [missed, met]))
    ]
    assert [(each.failed_attempts, each.attempts) for each in counted] == [(1, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize("fault", list(FailureClass))
def test_what_a_check_missed_takes_the_class_of_the_fault_behind_it(fault: FailureClass) -> None:
    """A check sees that something is missing and not why; only a world that refused makes it environmental."""
    missed = judging.from_check(Criterion(text="c"), CheckResult(False, "nothing there", FailureClass.LOGICAL))
    passed = judging.from_check(Criterion(text="c"), CheckResult(True, "there"))
    fact = Fact("it failed", fault, ("shell:cp",))
    assert judging.missed_by(missed, fact).failure_class is fault
    assert judging.missed_by(passed, fact) is passed
    if fault is FailureClass.ENVIRONMENTAL:
        assert judging.missed_by(missed, fact).identities == ("shell:cp",)
        assert judging.missed_by(missed, fact).accountable is Role.PLANNER


@pytest.mark.parametrize(
    ("lacking", "fault"),
    [
        (call(reason="there is no out.csv; similar names: a.csv", tool="read_file"), FailureClass.LOGICAL),
        (call(said="cat: out.csv: No such file or directory"), FailureClass.LOGICAL),
        (call(reason="there is no in.csv; similar names: out.csv", tool="read_file"), FailureClass.ENVIRONMENTAL),
        (call(said="out.csv: Permission denied"), FailureClass.ENVIRONMENTAL),
    ],
)
def test_what_was_to_be_made_is_no_lack_of_the_world(lacking: ToolCall, fault: FailureClass) -> None:
    """A last act that does not find the file which a check misses too: nobody has made it."""
    gone = Reason(found=Found.MISSING, subject="out.csv")
    missed = judging.from_check(ONE[0], CheckResult(False, gone, FailureClass.LOGICAL))
    fact = Fact("it failed", lacking.failure_class, lacking.identity)
    verdicts = judging.refuted([missed], [Criterion(text="d")], fact, [lacking])
    assert {each.failure_class for each in verdicts} == {fault}


@pytest.mark.parametrize("found", list(Found))
def test_what_stands_against_words_or_checks_blames_no_tool(found: Found) -> None:
    """An answer's tokens and a check that cannot be used are nobody's fault; all else cites what it cites."""
    fact = Fact(Reason(found=found), identities=("shell:x",))
    (verdict,) = judging.against(ONE, fact)
    assert verdict.blameless is (found in BLAMES_NOBODY)
    assert verdict.identities == (() if verdict.blameless else ("shell:x",))


def test_what_is_cut_of_a_reason_ends_at_a_word_and_is_marked() -> None:
    """A path that is cut in the middle would name another one."""
    claim = "the output has no match of done: renamed in " + "src/shop/report.py, " * 60
    failed = judging.verdict_on(ONE[0], "fail", claim, DecidedBy.CHECK)
    (told,) = judging.given_up((failed,), (), Fact("a file is missing", contradicts=False))
    seen, _, why = told.evidence.partition("; ")
    assert seen.endswith("src/shop/report.py,…") and why == "a file is missing"


# --- corrections ------------------------------------------------------------------------------------------------


def test_a_correction_names_the_fact_once() -> None:
    """What was wrong, each thing once; a fact without the criterion, a judge's or a check's word with it."""
    fact = Fact("35: in no call's output")
    verdicts = [*judging.against([Criterion(text="a"), Criterion(text="b")], fact)]
    signal = correction_for(result(call(CallStatus.OK)), verdicts)
    assert (signal.what_was_wrong, signal.what_to_do) == ("35: in no call's output", "")
    assert (signal.failed_criterion, signal.failure_class) == ("a", FailureClass.LOGICAL)
    missed = judging.from_check(ONE[0], CheckResult(False, "no match"))
    assert correction_for(result(), [missed], "count with wc").what_was_wrong == "c: no match"
    assert correction_for(result(), [missed], "count with wc").what_to_do == "count with wc"


def test_a_correction_that_is_cut_ends_at_a_word() -> None:
    """Half a note of how long a text was says something else."""
    missed = judging.from_check(ONE[0], CheckResult(False, "no match in it " * 120))
    signal = correction_for(result(), [missed], "count with wc " * 40)
    words = {"no", "match", "in", "it", "count", "with", "wc"}
    head, cut, tail = signal.what_was_wrong.partition("[…")
    assert cut and (head.split()[-1] in words) and tail.partition("]")[2].split()[0] in words
    assert signal.what_to_do.endswith("…") and signal.what_to_do.removesuffix("…").split()[-1] in words


def test_a_tie_corrects_as_logical() -> None:
    """As many logical as environmental failures: something can be done differently."""
    logical = judging.from_fact(ONE[0], Fact("x"))
    world = logical.model_copy(update={"failure_class": FailureClass.ENVIRONMENTAL})
    assert correction_for(result(), [logical, world]).failure_class is FailureClass.LOGICAL
    assert correction_for(result(), [world, world, logical]).failure_class is FailureClass.ENVIRONMENTAL


FILLED = Criterion(text="filled", mode=Mode.VERIFIABLE, check=FileMatches(path="a.txt", regex="^x$"))
NAMED = Criterion(text="named", mode=Mode.VERIFIABLE, check=OutputMatches(regex="^x$"))


@pytest.mark.parametrize(
    ("criterion", "ended", "output", "blameless"),
    [
        (FILLED, {}, "It says x now.", True),
        (FILLED, {}, "put out", True),
        (NAMED, {}, "It says x now.", True),
        (NAMED, {}, "put out", False),
        (FILLED, {"status": "error"}, "It says x now.", False),
        (FILLED, {"dropped": ("/p/a.txt",)}, "It says x now.", False),
        (FILLED.model_copy(update={"by": "person"}), {}, "It says x now.", False),
    ],
)
async def test_a_check_of_r2_speaks_against_no_call_that_ended_well(
    criterion: Criterion, ended: dict[str, object], output: str, blameless: bool
) -> None:
    """The check may be wrong. A call whose own output it refuses is blamed, as by a check of the person's."""
    given = {"tool": "edit_file", "identity": ("edit_file",), "output": "put out\n", "status": "ok", **ended}
    source = cast(EvidenceSource, _Unfilled())
    found = await checked([criterion], output, [ToolCall.model_validate(given)], source, "fill a.txt")
    assert (found[criterion.text].verdict, found[criterion.text].blameless) == ("fail", blameless)


class _Unfilled:
    async def file(self, path: str) -> FileView:
        return FileView(exists=True, text="y\n")
