"""What R4b and R7 compute from a round: the merge, the gap, the blocks, the trajectory, the time, the ending."""

from __future__ import annotations

import pytest

from artoo.contracts.criteria import Criterion, FileExists, Mode
from artoo.contracts.execution import CallStatus, CriterionVerdict, GapPoint, SubTaskOutcome, ToolCall
from artoo.contracts.failure import FailureClass
from artoo.contracts.plan import DispatchManifest, Joined, ManifestEntry, SharedPath
from artoo.contracts.roles import Role
from artoo.contracts.solution import Directive, ReplanRequest, UnmetCriterion
from artoo.control.decision import MacroState
from artoo.control.hyperparameters import Hyperparameters
from artoo.loops.medium.blocking import targets_to_block, tools_to_block
from artoo.loops.medium.endings import unmet_of
from artoo.loops.medium.fan_in import FanIn, concluding
from artoo.loops.medium.trajectory import Gap, Trajectory, delivered, measure
from artoo.ports.tools import Parameter, ToolSpec
from artoo.verdicts.judging import left_open

LOGICAL, ENVIRONMENTAL = FailureClass.LOGICAL, FailureClass.ENVIRONMENTAL


def verdict(
    text: str = "c", *, fails: FailureClass | None = None, hard: bool = True, k: int = 1, n: int = 1
) -> CriterionVerdict:
    return CriterionVerdict(
        criterion=text,
        mode=Mode.VERIFIABLE if hard else Mode.PLAUSIBLE,
        verdict="pass" if fails is None else "fail",
        failure_class=fails,
        failed_attempts=k if fails else 0,
        attempts=n,
        evidence="seen",
    )


def outcome(
    name: str = "1", *verdicts: CriterionVerdict, calls: tuple[ToolCall, ...] = (), failed: bool | None = None
) -> SubTaskOutcome:
    bad = any(each.verdict == "fail" for each in verdicts) if failed is None else failed
    return SubTaskOutcome(
        subtask_id=name,
        parent_task_id="t",
        status="failed" if bad else "matched",
        intent=f"do {name}",
        output=f"out {name}",
        criteria_verdicts=verdicts,
        tool_calls=calls,
    )


def call(
    identity: str = "read_file", target: str = "a.txt", status: CallStatus = CallStatus.ERROR, said: str = ""
) -> ToolCall:
    return ToolCall(
        tool=identity.partition(":")[0], identity=(identity,), target=target, status=status, error_output=said
    )


# --- FanIn and the merge ----------------------------------------------------------------------------------------


def manifest(*sequences: int) -> DispatchManifest:
    entries = tuple(
        ManifestEntry(
            subtask_id=str(number),
            sequence=sequence,
            intent="",
            success_criteria=(Criterion(text="c"), Criterion(text="d")),
        )
        for number, sequence in enumerate(sequences, 1)
    )
    return DispatchManifest(task_id="t", round=1, subtasks=entries)


def joined(*names: str, shared: tuple[SharedPath, ...] = ()) -> Joined:
    return Joined(round=1, subtask_ids=names, shared=shared)


def test_a_round_is_complete_when_all_have_ended_and_are_joined() -> None:
    """Every subtask matched and is in the task's view: nothing is missing, in the plan's order."""
    fan_in = FanIn(manifest(1, 1, 2))
    assert not fan_in.complete
    for name in ("2", "1", "3"):
        assert not fan_in.complete
        fan_in.add(outcome(name))
    fan_in.join(joined("1", "2"))
    assert not fan_in.complete
    fan_in.join(joined("3"))
    assert fan_in.complete and not fan_in.failed and fan_in.never_judged == ()
    assert [each.subtask_id for each in fan_in.everything] == ["1", "2", "3"]


def test_a_failed_group_ends_the_round_once_its_siblings_are_done() -> None:
    """Later groups are not waited for, and their criteria count as not run."""
    fan_in = FanIn(manifest(1, 1, 2, 3))
    fan_in.add(outcome("1", verdict(fails=LOGICAL)))
    assert not fan_in.complete
    fan_in.add(outcome("2"))
    assert not fan_in.complete
    fan_in.join(joined("2", "1"))
    assert fan_in.complete and fan_in.failed and len(fan_in.never_judged) == 4


def test_a_path_that_two_subtasks_changed_is_a_fact_and_no_failure() -> None:
    """The round goes on, both stand, and the prompt of the merge says which path it is."""
    fan_in = FanIn(manifest(1, 1))
    fan_in.add(outcome("1"))
    fan_in.add(outcome("2"))
    assert fan_in.shared_text == ""
    fan_in.join(joined("1", "2", shared=(SharedPath(path="/p/a.txt", subtasks=("1", "2")),)))
    assert fan_in.complete and not fan_in.failed
    assert [each.subtask_id for each in fan_in.matched] == ["1", "2"]
    assert "/p/a.txt" in fan_in.shared_text


CRITERION = Criterion(text="c", mode=Mode.VERIFIABLE, check=FileExists(path="a"))


def test_the_last_subtask_concludes_what_it_knew() -> None:
    """A last one that ran alone after all others had their results; parallel last ones conclude nothing."""
    entries = [ManifestEntry(subtask_id=key, sequence=n, intent=key) for key, n in (("a", 1), ("b", 1), ("c", 2))]
    fan_in = FanIn(DispatchManifest(task_id="t", round=1, subtasks=tuple(entries)))
    for key in "abc":
        fan_in.add(outcome(key))
    found = concluding(fan_in)
    assert found is not None and found.subtask_id == "c"
    beside = FanIn(DispatchManifest(task_id="t", round=1, subtasks=tuple(entries[:2])))
    for key in "ab":
        beside.add(outcome(key))
    assert concluding(beside) is None


# --- the gap ----------------------------------------------------------------------------------------------------


def request(*outcomes: SubTaskOutcome, task: tuple[CriterionVerdict, ...] = (), not_run: int = 0) -> ReplanRequest:
    return ReplanRequest(task_id="t", outcomes=outcomes, task_verdicts=task, not_run=not_run)


def test_both_levels_count_in_d_and_p() -> None:
    """Subtask and task criteria together: one of four failed, logical."""
    gap = measure(request(outcome("1", verdict(), verdict()), task=(verdict(), verdict(fails=LOGICAL))))
    assert (gap.distance, gap.implausibility, gap.criteria) == (0.25, 1.0, 4)
    assert not gap.evidence.allows_success


def test_what_never_ran_counts_in_d_alone() -> None:
    """Criteria of subtasks that did not start failed in D, and say nothing about the approach."""
    gap = measure(request(outcome("1", verdict(fails=ENVIRONMENTAL)), outcome("0", verdict()), not_run=2))
    assert (gap.distance, gap.implausibility, gap.failure_class) == (0.75, 0.0, "environmental")


def test_plausible_criteria_count_by_how_often_they_failed() -> None:
    """A plausible criterion that failed in one of two attempts counts half."""
    gap = measure(request(outcome("1", verdict(fails=LOGICAL, hard=False, k=1, n=2))))
    assert gap.distance == 0.5


def test_open_counts_as_passed_and_is_never_accepted() -> None:
    """An open criterion adds nothing to D; with one the best end is success."""
    gap = measure(request(outcome("1", left_open(CRITERION, "")), outcome("2", verdict(fails=LOGICAL))))
    assert gap.distance == 0.5
    assert delivered(()).state is MacroState.ACCEPT and delivered(("c",)).state is MacroState.SUCCESS


def test_a_refused_call_is_no_wrong_approach() -> None:
    """A verdict that blames only what the harness turned away is in neither count behind P."""
    blames = verdict(fails=LOGICAL).model_copy(update={"identities": ("shell:rm",)})
    refused = outcome("1", blames, calls=(call("shell:rm", status=CallStatus.REFUSED),))
    assert measure(request(refused)).logical == 0
    assert measure(request(outcome("1", blames, calls=(call("shell:rm"),)))).logical == 1


def after(*missed: FailureClass | None, text: str = "c") -> SubTaskOutcome:
    """An outcome whose attempts missed a criterion for these reasons; None: an attempt that met it."""
    trajectory = tuple(
        GapPoint(attempt=number, score=each is None, unmet_criteria=(text,) if each else (), failure_class=each)
        for number, each in enumerate(missed, 1)
    )
    made = outcome("1", verdict(text, fails=missed[-1], k=len(missed), n=len(missed)))
    return made.model_copy(update={"gap_trajectory": trajectory})


def test_p_is_of_all_attempts_and_not_of_the_last() -> None:
    """Two attempts that the world refused outweigh a last one that ended well and did not help."""
    gap = measure(request(after(ENVIRONMENTAL, ENVIRONMENTAL, LOGICAL)))
    assert (gap.logical, gap.environmental, gap.failure_class) == (1, 2, "environmental")
    assert measure(request(after(ENVIRONMENTAL, None, LOGICAL))).implausibility == 0.5
    assert measure(request(after(LOGICAL, None))).logical == 0, "what was met at last is no failure"


# --- blocking ---------------------------------------------------------------------------------------------------


def spec(name: str, *, reads: bool = True, writes: bool = False) -> ToolSpec:
    return ToolSpec(name, "", (Parameter("p", ""),), 1, reads=reads, writes=writes)


SPECS = (spec("read_file"), spec("glob"), spec("write_file", reads=False, writes=True), spec("shell", writes=True))


@pytest.mark.parametrize("status", [s for s in CallStatus if s is not CallStatus.ERROR])
def test_only_an_error_of_its_own_blocks_a_tool_that_nobody_cites(status: CallStatus) -> None:
    """Not a pipeline that ended well, and not what timed out, was refused, interrupted or still runs."""
    calls = (call("shell:head", status=status), call("glob"))
    assert tools_to_block([outcome("1", verdict(fails=LOGICAL), calls=calls)], SPECS) == ("glob",)


def test_an_honest_cannot_blocks_nothing() -> None:
    """Neither tools nor targets, whatever failed before it was said."""
    cited = verdict(fails=LOGICAL).model_copy(update={"identities": ("shell:gcc",)})
    failed = outcome("1", cited, calls=(call("shell:gcc"),))
    hopeless = failed.model_copy(update={"hopeless": True})
    assert tools_to_block([failed], SPECS) == ("shell:gcc",) and targets_to_block([failed])
    assert tools_to_block([hopeless], SPECS) == () and targets_to_block([hopeless]) == ()


def test_a_missing_file_says_nothing_of_the_tool_that_looked_for_it() -> None:
    """Neither where it is cited for that alone, nor where nobody is; what failed otherwise is blamed as ever."""
    gone = call("read_file", "a.txt", status=CallStatus.ERROR).model_copy(update={"reason": "there is no a.txt"})
    cited = verdict(fails=ENVIRONMENTAL).model_copy(update={"identities": ("read_file",)})
    wrong = verdict(fails=LOGICAL)
    assert tools_to_block([outcome("1", cited, wrong, calls=(gone, call("glob")))], SPECS) == ("glob",)
    assert tools_to_block(
        [outcome("1", cited, calls=(gone,)), outcome("2", wrong, calls=(call("glob"),))], SPECS
    ) == ("glob",)
    read = (gone, call("read_file", "b.txt", status=CallStatus.OK))
    assert tools_to_block([outcome("1", cited, calls=read)], SPECS) == ()
    broken = (*read, call("read_file", "c.txt", status=CallStatus.ERROR))
    assert tools_to_block([outcome("1", cited, calls=broken)], SPECS) == ("read_file",)
    assert targets_to_block([outcome("1", cited, calls=(gone,))]) == (("read_file", "a.txt"),)


def test_the_last_hands_are_never_blocked() -> None:
    """Something that reads and something that writes is always left."""
    calls = tuple(call(name) for name in ("read_file", "glob", "shell", "write_file"))
    failed = outcome("1", verdict(fails=LOGICAL), calls=calls)
    assert tools_to_block([failed], SPECS) == ("read_file", "glob", "write_file")
    assert tools_to_block([failed], SPECS[3:]) == ("read_file", "glob", "write_file")
    assert "shell" not in tools_to_block([failed], SPECS[3:])


@pytest.mark.parametrize(
    ("failed_call", "blocked"),
    [
        (call(said="cat: a.txt: No such file or directory"), True),
        (call(status=CallStatus.REFUSED), False),
        (call(status=CallStatus.REFUSED).model_copy(update={"withheld_by": "person"}), True),
        (call(status=CallStatus.REFUSED).model_copy(update={"dropped": ("a.txt",)}), True),
        (call(status=CallStatus.OK), False),
        (call(status=CallStatus.TIMEOUT), False),
        (call(status=CallStatus.INTERRUPTED), False),
        (call(said="Resource temporarily unavailable"), False),
        (call(said="curl: connection reset by peer"), False),
        (call(target=""), False),
        (call(target="out.txt"), False),
        (call(target="./out.txt"), False),
    ],
)
def test_targets(failed_call: ToolCall, blocked: bool) -> None:
    """What failed for good, or was not consented to, is blocked for its identity; what the task made itself,
    passing faults and calls that never ran are not."""
    made = call("write_file", "out.txt", CallStatus.OK).model_copy(update={"changes": ("/p/./out.txt",)})
    pairs = targets_to_block([outcome("1", verdict(fails=ENVIRONMENTAL), calls=(failed_call, made))])
    assert pairs == ((("read_file", "a.txt"),) if blocked else ())


# --- trajectory -------------------------------------------------------------------------------------------------

H = Hyperparameters(time_budget_ms=100_000)


def gap(distance: float, logical: int = 1, environmental: int = 0) -> Gap:
    from artoo.control.decision import Evidence

    return Gap(distance, logical, environmental, 4, Evidence())


def test_the_gradient_is_taken_at_equal_cost() -> None:
    """An unchanged gap in the next round is a plateau at equal cost, while the paper's gradient sees its price."""
    trajectory = Trajectory(H)
    first = trajectory.measure(gap(0.5, 0, 1), 0, 100_000)
    trajectory.advance(first, Directive.CHANGE_PATH)
    second = trajectory.measure(gap(0.5, 0, 1), 50_000, 100_000)
    assert second.equal_cost == 0.0 and second.paper == pytest.approx(0.4 * (0.6 / 3 + 0.4 * 0.5))
    assert second.gradient == second.equal_cost
    paper = Trajectory(Hyperparameters(gradient="paper"))
    paper.advance(first, Directive.CHANGE_PATH)
    assert paper.measure(gap(0.5, 0, 1), 50_000, 100_000).gradient == pytest.approx(second.paper)


def test_worsening_is_counted_and_forgiven() -> None:
    """Two worsening rounds in a row end the task; one that holds in between starts the count anew."""

    def states(*distances: float) -> list[MacroState]:
        trajectory = Trajectory(Hyperparameters(max_replans=20))
        found: list[MacroState] = []
        for distance in distances:
            measured = trajectory.measure(gap(distance), 0, 100_000)
            decision = trajectory.decide(measured, may_replan=True)
            found.append(decision.state)
            trajectory.advance(measured, Directive(decision.state.value))
        return found

    assert states(0.4, 0.6, 0.8)[-1] is MacroState.ABANDON
    assert states(0.4, 0.6, 0.6, 0.8)[-1] is MacroState.CHANGE_APPROACH


def test_a_demand_that_cannot_be_met_ends_a_task_where_that_is_set() -> None:
    """So many rounds in a row as are set; never by the defaults, and never where only the place has to change."""

    def states(after: int, *rounds: tuple[int, bool]) -> list[MacroState]:
        trajectory = Trajectory(Hyperparameters(exhausted_after=after))
        found: list[MacroState] = []
        for logical, left in rounds:
            measured = trajectory.measure(gap(1.0, logical, 1 - logical), 0, 100_000)
            decision = trajectory.decide(measured, may_replan=True)
            decision = trajectory.unless_exhausted(decision, another_left=left)
            assert trajectory.record(decision, measured).exhausted == (decision.state is MacroState.ABANDON)
            found.append(decision.state)
        return found

    wrong, worldly = (1, False), (0, False)
    assert MacroState.ABANDON not in states(0, wrong, wrong, wrong)
    assert states(1, (1, True), wrong) == [MacroState.BREAK_SYMMETRY, MacroState.ABANDON]
    assert states(2, wrong, (1, True), wrong, wrong)[2:] == [MacroState.BREAK_SYMMETRY, MacroState.ABANDON]
    assert states(1, worldly) == [MacroState.CHANGE_PATH]


# --- time -------------------------------------------------------------------------------------------------------


# --- endings ----------------------------------------------------------------------------------------------------


def test_every_unmet_criterion_is_named_once() -> None:
    """Subtask and task verdicts of the same criterion are one entry, with reason and the role that answers."""
    unmet = unmet_of(
        request(outcome("1", verdict("a", fails=LOGICAL)), task=(verdict("a", fails=LOGICAL), verdict("b")))
    )
    assert unmet == (
        UnmetCriterion(criterion="a", reason="seen", failure_class=LOGICAL, accountable=Role.EXECUTOR),
    )
