"""What a task teaches, case by case: pure functions over outcomes and directives."""

from __future__ import annotations

import pytest

from artoo.contracts.criteria import Mode
from artoo.contracts.execution import CallStatus, CriterionVerdict, DecidedBy, SubTaskOutcome, ToolCall
from artoo.contracts.failure import FailureClass
from artoo.contracts.memory import Level, MegramState
from artoo.contracts.solution import Directive, Loss, PlanDirective
from artoo.contracts.tags import Pair, kind_pair, macro_pair, micro_pair, thing_pair, tool_pair
from artoo.control.potentials import QUANTISATION
from artoo.loops.lesson import Lesson
from artoo.loops.medium.lessons import Lessons, found_things


def call(identity: str, target: str, status: CallStatus = CallStatus.OK, **more: object) -> ToolCall:
    """A record of one call."""
    tool = identity.partition(":")[0]
    return ToolCall.model_validate(
        {"tool": tool, "identity": (identity,), "target": target, "status": status, **more}
    )


def outcome(status: str, *calls: ToolCall, key: str = "s1", infrastructure: str | None = None) -> SubTaskOutcome:
    """How a subtask ended."""
    return SubTaskOutcome.model_validate(
        {
            "subtask_id": key,
            "parent_task_id": "t",
            "status": status,
            "intent": "look",
            "failure_reason": "nothing\nthere" if status == "failed" else None,
            "tool_calls": calls,
            "infrastructure": infrastructure,
        }
    )


PASSED = CriterionVerdict(criterion="it is there", verdict="pass", decided_by=DecidedBy.CHECK)


def confirmed(*calls: ToolCall) -> SubTaskOutcome:
    """A matched subtask of which a criterion has passed."""
    return outcome("matched", *calls).model_copy(update={"criteria_verdicts": (PASSED,)})


def directive(
    name: Directive, *, tools: tuple[str, ...] = (), targets: tuple[tuple[str, str], ...] = ()
) -> PlanDirective:
    """A directive that blocks."""
    return PlanDirective(
        task_id="t",
        round=2,
        loss=Loss(),
        prev_directive=Directive.INIT,
        directive=name,
        blocked_tools=tools,
        blocked_targets=targets,
    )


INTENT = "Count lines of a"


def of_tool(identity: str) -> list[Pair]:
    """What is learnt of a tool beyond one target: for the kind of request, and as such."""
    return [kind_pair(identity, INTENT), tool_pair(identity)]


def pairs(lessons: list[Lesson]) -> list[Pair]:
    """What lessons are about."""
    return [lesson.pair for lesson in lessons]


@pytest.mark.parametrize(
    ("name", "worth"),
    [
        (Directive.CHANGE_APPROACH, "change_approach"),
        (Directive.BREAK_SYMMETRY, "change_approach"),
        (Directive.CHANGE_PATH, "change_path"),
        (Directive.REFINE, "refine"),
    ],
)
def test_a_blocked_pair_gets_the_directive_s_values(name: Directive, worth: str) -> None:
    """Each newly blocked pair is one micro megram; a wrong approach is the tool's too, a place's refusal is not.

    break_symmetry blames like change_approach.
    """
    failed = outcome("failed", call("shell:find", "/home", CallStatus.ERROR))
    found = Lessons().directed(directive(name, targets=(("shell:find", "/home"),)), INTENT, [failed])
    wide = of_tool("shell:find") if worth == "change_approach" else []
    assert pairs(found) == [micro_pair("shell:find", "/home"), *wide]
    assert {lesson.stimulus for lesson in found} == {QUANTISATION[worth]}
    assert {lesson.state.value for lesson in found} == {name.value}
    assert found[0].content == "failed: nothing there"


def test_what_the_world_refused_is_no_wrong_approach() -> None:
    """In a round that failed for another reason, a file that was not there teaches nothing: it may come."""
    gone = call("read_file", "a.csv", CallStatus.ERROR, reason="No such file or directory")
    failed = outcome("failed", gone, call("python", "print(1)"))
    blocks = directive(Directive.BREAK_SYMMETRY, tools=("read_file", "python"))
    found = pairs(Lessons().directed(blocks, INTENT, [failed]))
    assert found == [micro_pair("python", "print(1)"), *of_tool("python")]


def test_what_files_hold_is_told_of_their_place_alone() -> None:
    """What is learnt of a tool is heard in other projects: the criterion, not the evidence with a file's text."""
    unmet = CriterionVerdict(
        criterion="a.txt is empty",
        mode=Mode.VERIFIABLE,
        verdict="fail",
        failure_class=FailureClass.LOGICAL,
        evidence="a.txt: Ada's salary",
        decided_by=DecidedBy.CHECK,
    )
    failed = outcome("failed", call("python", "print(1)")).model_copy(
        update={"criteria_verdicts": (unmet,), "failure_reason": "a.txt is empty: a.txt: Ada's salary"}
    )
    found = Lessons().directed(directive(Directive.BREAK_SYMMETRY, tools=("python",)), INTENT, [failed])
    assert [lesson.content for lesson in found] == [
        "failed: a.txt is empty: a.txt: Ada's salary",
        *["did not meet: a.txt is empty"] * 2,
    ]


def test_infrastructure_and_refusals_blame_nobody() -> None:
    """A timeout of the machine, or a call that never ran, says nothing about a tool."""
    name = Directive.CHANGE_APPROACH
    down = outcome("failed", call("glob", "*.py"), infrastructure="timeout")
    assert Lessons().directed(directive(name, targets=(("glob", "*.py"),)), INTENT, [down]) == []
    refused = outcome("failed", call("glob", "*.py", CallStatus.REFUSED))
    assert Lessons().directed(directive(name, tools=("glob",)), INTENT, [refused]) == []
    assert Lessons().directed(directive(name, targets=(("glob", "*.py"),)), INTENT, [refused]) == []


@pytest.mark.parametrize("by", ["person", "nobody"])
def test_missing_consent_blames_nobody(by: str) -> None:
    """One no, or nobody there to ask, is no reason to avoid a tool, its target or the intent in later tasks."""
    withheld = call("shell:rm", "rm a", CallStatus.ERROR, dropped=("a",), withheld_by=by)
    failed = outcome("failed", withheld)
    ordered = directive(Directive.BREAK_SYMMETRY, tools=("shell:rm",), targets=(("shell:rm", "rm a"),))
    assert Lessons().directed(ordered, INTENT, [failed]) == []
    assert Lessons().abandoned("Delete a", "replans", [failed]) == []


@pytest.mark.parametrize("state", [MegramState.ACCEPT, MegramState.SUCCESS])
def test_an_ending_credits_what_worked(state: MegramState) -> None:
    """Every pair that a confirmed subtask used and that worked, its tool and the kind; nothing of failed ones."""
    good = confirmed(call("shell:wc", "wc -l a"), call("glob", "x", CallStatus.ERROR))
    bad = outcome("failed", call("python", "1/0"), key="s2")
    found = Lessons().delivered(state, INTENT, "Count!", [good, bad])
    assert pairs(found) == [micro_pair("shell:wc", "wc -l a"), *of_tool("shell:wc"), macro_pair(INTENT)]
    assert {lesson.stimulus for lesson in found} == {QUANTISATION[state.value]}
    assert found[-1].content == "was done with shell:wc"


def test_what_nothing_confirmed_teaches_nothing() -> None:
    """A matched subtask whose criteria nobody decided, and a confirmed answer without a call, are no success."""
    unverified, words = outcome("matched", call("shell:wc", "wc -l a")), confirmed()
    assert Lessons().delivered(MegramState.SUCCESS, INTENT, "Count!", [unverified, words]) == []


def test_breaking_symmetry_credits_the_next_round_once_it_matched() -> None:
    """+.75 for the pairs of the round that obeyed break_symmetry, not for what had matched before it."""
    lessons = Lessons()
    early = outcome("matched", call("glob", "x"), key="early")
    assert lessons.after_break(Directive.INIT, INTENT, [early]) == []
    late = outcome("matched", call("python", "p"), key="late")
    found = lessons.after_break(Directive.BREAK_SYMMETRY, INTENT, [early, late])
    assert pairs(found) == [micro_pair("python", "p"), *of_tool("python")]
    assert {lesson.stimulus for lesson in found} == {QUANTISATION["break_symmetry"]}
    assert lessons.after_break(Directive.BREAK_SYMMETRY, INTENT, [early, late]) == []


@pytest.mark.parametrize(
    ("made", "place"),
    [
        (call("read_file", "archive/data.csv"), "/p/archive/data.csv"),
        (call("shell:wc", "wc -l '/srv/d/data.csv'"), "/srv/d/data.csv"),
        (call("find_files", "data.csv", output="old/data.csv\nb/c", result_count=1), "/p/old/data.csv"),
        (call("read_file", "./data.csv"), None),
        (call("read_file", "archive/mydata.csv"), None),
        (call("read_file", "archive/data.csv.bak"), None),
        (call("read_file", "archive/data.csv", CallStatus.ERROR), None),
    ],
)
def test_a_named_thing_found_elsewhere_is_knowledge(made: ToolCall, place: str | None) -> None:
    """Level K, k = .2: a working call that reached the named thing at a place the request does not say."""
    found = found_things(["data.csv"], [outcome("matched", made)], "/p")
    if place is None:
        assert found == []
        return
    (lesson,) = found
    where = "/p" if place.startswith("/p/") else ""
    assert (lesson.pair, lesson.level, lesson.stimulus.k) == (thing_pair("data.csv", where), Level.KNOWLEDGE, 0.2)
    assert lesson.content == f"data.csv was found at {place}"
