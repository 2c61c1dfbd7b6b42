"""What R4b and R7 compute from a round: the merge, the gap, the blocks, the trajectory, the time, the ending."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.contracts.criteria import Criterion, FileExists, Mode
from artoo.contracts.execution import CallStatus, CriterionVerdict, DecidedBy, GapPoint, SubTaskOutcome, ToolCall
from artoo.contracts.failure import FailureClass
from artoo.contracts.plan import DispatchManifest, Joined, ManifestEntry, SharedPath
from artoo.contracts.roles import Role
from artoo.contracts.shared_paths import shared_paths
from artoo.contracts.solution import Directive, ReplanRequest, UnmetCriterion
from artoo.control.decision import MacroState
from artoo.control.hyperparameters import Hyperparameters
from artoo.loops.medium.blocking import another_left, still_open, targets_to_block, tools_to_block
from artoo.loops.medium.endings import unmet_of
from artoo.loops.medium.fan_in import (
    FanIn,
    concluding,
    covered,
    merged_output,
    of_the_whole,
    unfinished,
)
from artoo.loops.medium.gaps import WRONG_APPROACH, Gap, measure
from artoo.loops.medium.trajectory import Trajectory, delivered
from artoo.ports.stopwatch import Stopwatch
from artoo.ports.tools import Parameter, ToolSpec
from artoo.testing import FakeClock
from artoo.verdicts.checks import CheckResult
from artoo.verdicts.judging import from_check, left_open

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


def test_only_certain_changes_make_a_shared_path() -> None:
    """What changed while something else ran may be that other's; what one subtask changed twice is its own."""

    def changing(name: str, *calls: tuple[str, bool]) -> SubTaskOutcome:
        made = (call("shell").model_copy(update={"changes": (path,), "overlapped": over}) for path, over in calls)
        return outcome(name, calls=tuple(made))

    one = changing("1", ("/p/a", False), ("/p/a", False), ("/p/b", True), ("/p/c", False))
    two = changing("2", ("/p/a", False), ("/p/b", False), ("/p/d", False))
    assert shared_paths((one, two)) == (SharedPath(path="/p/a", subtasks=("1", "2")),)


def test_strangers_are_not_counted() -> None:
    """An outcome of another round changes nothing."""
    fan_in = FanIn(manifest(1))
    fan_in.add(outcome("9"))
    assert fan_in.everything == ()


def test_what_is_carried_comes_first() -> None:
    """Carried outcomes stand before this round's, and are merged with them."""
    fan_in = FanIn(manifest(1), carried=(outcome("0"),))
    fan_in.add(outcome("1"))
    assert merged_output(fan_in.matched) == "do 0\nout 0\n\ndo 1\nout 1"
    assert merged_output([outcome("1")]) == "out 1"
    assert merged_output([]) == ""


CRITERION = Criterion(text="c", mode=Mode.VERIFIABLE, check=FileExists(path="a"))


def test_the_only_subtask_covers_a_criterion_of_the_same_text() -> None:
    """What was judged on the same output is not judged again; the planner answers for the whole."""
    found = covered(outcome("1", verdict("c", fails=ENVIRONMENTAL)))["c"]
    assert (found.failure_class, found.accountable) == (ENVIRONMENTAL, Role.PLANNER)
    assert "c" not in covered(outcome("1", verdict("other")))


def test_what_is_missing_because_a_subtask_is_has_no_class() -> None:
    """Unmet while a subtask is unfinished: counted in D, absent from P."""
    gone = from_check(CRITERION, CheckResult(False, "gone", LOGICAL, ("shell:ls",)))
    whole = of_the_whole(gone)
    assert (whole.verdict, whole.failure_class, whole.decided_by) == ("fail", LOGICAL, DecidedBy.CHECK)
    assert (whole.accountable, whole.identities, whole.failed_attempts) == (Role.PLANNER, (), 1)
    other = Criterion(text="d")
    missing = unfinished((CRITERION, other), {"c": whole})
    assert [missing[text].failure_class for text in "cd"] == [None, None]
    assert (missing["c"].evidence, missing["d"].verdict) == ("gone", "fail")


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


def test_nothing_at_all_is_the_whole_distance() -> None:
    """No criteria is no success; an outcome without verdicts is one failed criterion."""
    assert measure(request()).distance == 1.0
    assert measure(request(outcome("1", failed=True))).distance == 1.0
    assert (WRONG_APPROACH.distance, WRONG_APPROACH.implausibility) == (1.0, 1.0)


def test_a_tie_is_mixed() -> None:
    """As many logical failures as environmental ones: no majority."""
    gap = measure(request(outcome("1", verdict(fails=LOGICAL), verdict(fails=ENVIRONMENTAL))))
    assert (gap.failure_class, gap.implausibility) == ("mixed", 0.5)


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


def test_one_miss_counts_once() -> None:
    """A task's criterion that an only subtask carries is the same miss in both verdicts."""
    only = after(LOGICAL, ENVIRONMENTAL)
    whole = request(only, task=(*only.criteria_verdicts, verdict("d", fails=LOGICAL)))
    assert (measure(whole).logical, measure(whole).environmental) == (2, 1)


@given(st.lists(st.sampled_from([None, LOGICAL, ENVIRONMENTAL]), max_size=6), st.integers(0, 4))
@settings(deadline=None, max_examples=80)
def test_the_gap_is_a_share(classes: list[FailureClass | None], not_run: int) -> None:
    """D and P stay in [0, 1]; D is 0 only when nothing failed and something was judged."""
    gap = measure(request(outcome("1", *(verdict(fails=each) for each in classes), failed=False), not_run=not_run))
    assert 0.0 <= gap.distance <= 1.0 and 0.0 <= gap.implausibility <= 1.0
    assert (gap.distance == 0.0) == (bool(classes) and not any(classes) and not not_run)


# --- blocking ---------------------------------------------------------------------------------------------------


def spec(name: str, *, reads: bool = True, writes: bool = False) -> ToolSpec:
    return ToolSpec(name, "", (Parameter("p", ""),), 1, reads=reads, writes=writes)


SPECS = (spec("read_file"), spec("glob"), spec("write_file", reads=False, writes=True), spec("shell", writes=True))


def test_cited_tools_are_blocked() -> None:
    """The identities that failing verdicts cite; those with an error of their own when none is cited."""
    cited = verdict(fails=LOGICAL).model_copy(update={"identities": ("shell:cat",)})
    assert tools_to_block([outcome("1", cited, calls=(call("glob"),))], SPECS) == ("shell:cat",)
    assert tools_to_block([outcome("1", verdict(fails=LOGICAL), calls=(call("glob"),))], SPECS) == ("glob",)
    assert tools_to_block([outcome("1", verdict(), calls=(call("glob"),))], SPECS) == ()


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


def test_disagreement_blames_no_tool() -> None:
    """What speaks against no tool blocks nothing; another failure beside it still does."""
    open_verdict = verdict(fails=LOGICAL).model_copy(update={"blameless": True})
    calls = (call("shell:awk"), call("glob"))
    assert tools_to_block([outcome("1", open_verdict, calls=calls)], SPECS) == ()
    cited = verdict(fails=LOGICAL).model_copy(update={"identities": ("glob",)})
    assert tools_to_block([outcome("1", open_verdict, cited, calls=calls)], SPECS) == ("glob",)


def test_what_never_ran_is_not_blocked_again() -> None:
    """A call that a block or a repetition turned away does not speak against what it names, even when cited."""
    refused = call("shell:grep", status=CallStatus.REFUSED)
    cited = verdict(fails=LOGICAL).model_copy(update={"identities": ("shell:grep", "glob")})
    assert tools_to_block([outcome("1", cited, calls=(refused, call("glob")))], SPECS) == ("glob",)
    assert tools_to_block([outcome("1", verdict(fails=LOGICAL), calls=(refused,))], SPECS) == ()
    assert targets_to_block([outcome("1", cited, calls=(refused,))]) == ()
    both = (refused, call("shell:grep"))
    assert tools_to_block([outcome("1", verdict(fails=LOGICAL), calls=both)], SPECS) == ("shell:grep",)


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


def test_blocks_add_up_over_the_rounds() -> None:
    """What earlier rounds blocked stays blocked, and is not suggested in the same directive."""
    failed = outcome("2", verdict(fails=LOGICAL), calls=(call("glob", "b.txt"),))
    tools = tools_to_block([failed], SPECS, ("read_file",))
    targets = targets_to_block([failed], (("read_file", "a.txt"),))
    assert tools == ("read_file", "glob") and targets == (("read_file", "a.txt"), ("glob", "b.txt"))
    suggested = ("glob", "shell:wc", "read_file on a.txt", "shell on a.txt")
    assert still_open(suggested, tools, targets) == ("shell:wc", "shell on a.txt")
    assert still_open(("shell:wc",), ("shell",), ()) == ()


def test_the_last_hands_are_never_blocked() -> None:
    """Something that reads and something that writes is always left."""
    calls = tuple(call(name) for name in ("read_file", "glob", "shell", "write_file"))
    failed = outcome("1", verdict(fails=LOGICAL), calls=calls)
    assert tools_to_block([failed], SPECS) == ("read_file", "glob", "write_file")
    assert tools_to_block([failed], SPECS[3:]) == ("read_file", "glob", "write_file")
    assert "shell" not in tools_to_block([failed], SPECS[3:])


@given(st.lists(st.sampled_from(["read_file", "glob", "shell", "write_file", "shell:rm"]), max_size=8))
@settings(deadline=None, max_examples=80)
def test_hands_are_left_whatever_failed(names: list[str]) -> None:
    """Whatever is cited, in whatever order: a reader and a writer remain."""
    blocked = tools_to_block([outcome("1", verdict(fails=LOGICAL), calls=tuple(map(call, names)))], SPECS)
    left = [each for each in SPECS if each.name not in blocked]
    assert any(each.reads for each in left) and any(each.writes for each in left)


def test_nothing_else_is_left_when_the_last_hands_failed() -> None:
    """Others are blocked, and what failed cannot be: another plan could only do the same again."""
    names = ("read_file", "glob", "write_file")
    failed = [outcome("1", verdict(fails=LOGICAL), calls=(call("shell"),))]
    assert not another_left(failed, SPECS, names)
    assert another_left(failed, SPECS, ()), "a single tool that failed once may be used in another way"
    assert another_left([outcome("1", verdict(fails=LOGICAL), calls=(call("glob"),))], SPECS, ("write_file",))
    assert another_left([], SPECS, names), "of nothing that was done nothing is said"


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


def test_calls_of_matched_subtasks_block_nothing() -> None:
    """A failed call on the way to success is forgiven."""
    assert targets_to_block([outcome("1", verdict(), calls=(call(said="gone"),))]) == ()


# --- trajectory -------------------------------------------------------------------------------------------------

H = Hyperparameters(time_budget_ms=100_000)


def gap(distance: float, logical: int = 1, environmental: int = 0) -> Gap:
    from artoo.control.decision import Evidence

    return Gap(distance, logical, environmental, 4, Evidence())


def test_the_first_round_has_no_gradient() -> None:
    """Nothing to compare with: ∇L is 0 by both definitions, and the previous directive is init."""
    trajectory = Trajectory(H)
    measured = trajectory.measure(gap(1.0), 10_000, 100_000)
    assert (measured.equal_cost, measured.paper, measured.loss.Omega) == (0.0, 0.0, pytest.approx(0.04))
    record = trajectory.record(trajectory.decide(measured, may_replan=True), measured)
    assert (record.round, record.directive, record.grad_l) == (1, Directive.BREAK_SYMMETRY, 0.0)


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


def test_a_deadline_makes_time_dearer() -> None:
    """Ω is taken from the budget that is left to this task."""
    trajectory = Trajectory(H)
    assert trajectory.measure(gap(1.0), 5_000, 10_000).loss.Omega == pytest.approx(0.2)
    assert trajectory.measure(gap(1.0), 5_000, 100_000).loss.Omega == pytest.approx(0.02)


# --- time -------------------------------------------------------------------------------------------------------


def test_pauses_do_not_count() -> None:
    """Time between question and answer stands still; questions nest, answers without one change nothing."""
    clock = FakeClock()
    watch = Stopwatch(clock)
    assert watch.elapsed_ms() == 0.0
    watch.start()
    clock.advance(2)
    watch.resume()
    watch.pause()
    clock.advance(10)
    watch.pause()
    assert watch.elapsed_ms() == 2_000.0
    clock.advance(10)
    watch.resume()
    clock.advance(10)
    watch.resume()
    clock.advance(1)
    assert watch.elapsed_ms() == 3_000.0


@given(st.lists(st.tuples(st.sampled_from(["pause", "resume", "wait"]), st.integers(0, 20)), max_size=20))
@settings(deadline=None, max_examples=80)
def test_time_that_counts_never_goes_back(steps: list[tuple[str, int]]) -> None:
    """Whatever is asked and answered, elapsed time grows, and never beyond the clock."""
    clock = FakeClock()
    watch = Stopwatch(clock)
    watch.start()
    last = 0.0
    for step, seconds in steps:
        if step == "pause":
            watch.pause()
        elif step == "resume":
            watch.resume()
        clock.advance(seconds)
        assert last <= watch.elapsed_ms() <= clock.monotonic() * 1_000
        last = watch.elapsed_ms()


# --- endings ----------------------------------------------------------------------------------------------------


def test_every_unmet_criterion_is_named_once() -> None:
    """Subtask and task verdicts of the same criterion are one entry, with reason and the role that answers."""
    unmet = unmet_of(
        request(outcome("1", verdict("a", fails=LOGICAL)), task=(verdict("a", fails=LOGICAL), verdict("b")))
    )
    assert unmet == (
        UnmetCriterion(criterion="a", reason="seen", failure_class=LOGICAL, accountable=Role.EXECUTOR),
    )
