"""What a person is told when something fails: the tool's own words, the cause once, and what can be done."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import cast

import pytest
from scenario import Ended, Json, Script, World, exists, gives_up, judged, moves, plan, replan, says, shell, subtask

from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.criteria import CheckAmended
from artoo.contracts.execution import CallStatus, SubTaskOutcome, ToolCall
from artoo.contracts.findings import FailedLast
from artoo.contracts.memory import MemoryWritten
from artoo.contracts.plan import PlanRefused
from artoo.contracts.solution import Directive, FinalResult, PlanDirective, ReplanRequest, StoppedBy
from artoo.loops.asking import Asker
from artoo.loops.medium.endings import Endings, EndState
from artoo.testing import Asked, Reply, with_body
from artoo.words.result import result_words


def again(command: str, *, final: bool = True) -> Script:
    """A model that always does the same."""
    return {
        "Plan": lambda _: plan(subtask("do it", tool="shell")),
        "ExecutorStep": lambda _: shell(command, final=final),
        "FailureReport": lambda _: moves(),
    }


def facts(ended: Ended) -> str:
    """What a person is told beside the answer."""
    return "\n".join(map(result_words("en").fact, ended.result.facts))


CURL = "# artoo hosts: example.com\ncurl -sS https://example.com/"

NO_SUCH = "rm: cannot remove 'none.txt': No such file or directory"


async def test_a_blocked_repeat_does_not_hide_what_the_tool_said(world: World) -> None:
    """Round after round the same command is turned away; the result has what it said when it ran, once."""
    ended = await world.play("delete none.txt", again("rm none.txt"))
    assert ended.told.count(NO_SUCH) == 1
    assert "blocked" not in ended.told
    assert ended.result.tried == ("shell: rm none.txt → error",)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (
            "npm error code ENEEDAUTH\nnpm error log in\nnpm error no log",
            "npm error code ENEEDAUTH … npm error no log",
        ),
        ("a.c:3: error: no x\nmake: *** [a.o] Error 1", "a.c:3: error: no x ↵ make: *** [a.o] Error 1"),
        ("fatal: no remote", "fatal: no remote"),
    ],
)
def test_what_failed_last_is_told_by_both_ends_of_its_error(printed: str, said: str) -> None:
    """Some programs say first what went wrong, others last."""
    ended = _delivered("It fails.", "All is well.", printed)
    (told,) = [fact for fact in ended.facts if isinstance(fact, FailedLast)]
    assert told.said == said


@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("asked", [False, True])
async def test_what_was_not_allowed_is_not_asked_for_again(world: World, asked: bool, final: bool) -> None:
    """The same act ends the task after its first repeat, also in other words; the result says what to type."""
    questions: list[ConfirmationRequest] = []
    count = itertools.count()

    async def no(request: ConfirmationRequest) -> bool:
        questions.append(request)
        return False

    def differently(_: Asked) -> Reply:
        return shell(f"{CURL}?{next(count)}", final=final)

    other_words: Script = {**again("", final=final), "ExecutorStep": differently}
    for script in (again(CURL, final=final), other_words):
        ended = await world.play("fetch example.com", script, confirm=no if asked else None)
        assert len(ended.contracts) <= 3
        assert ended.result.stopped_by is StoppedBy.REFUSED_BY_USER
        assert [(act.verb, act.target) for act in ended.one(ConfirmationRequest).acts] == [
            ("network", "example.com:443")
        ]


async def test_what_only_a_model_is_told_is_not_shown(world: World) -> None:
    """An act that nobody could allow is named once, without the advice to the model."""
    ended = await world.play("fetch example.com", again(CURL))
    assert ended.result.stopped_by is StoppedBy.REFUSED_BY_USER
    assert "report it" not in ended.told
    assert "network example.com:443" in ended.told


async def test_a_worker_is_told_how_to_end_where_something_was_withheld(world: World) -> None:
    """By the refusal itself, and by a correction: its report meets no check, and `cannot` needs none."""
    script: Script = {
        "Plan": plan(subtask("fetch it", exists("page.html"))),
        "ExecutorStep": [
            shell(f"{CURL} > page.html", final=False),
            with_body({"tool": "answer", "sources": [1], "failures": [1]}, "Nobody allows it.", "text"),
            gives_up("it was not fetched: nobody allows it"),
        ],
        "ValidationReport": judged(("pass", "nobody can be asked")),
        "FailureReport": lambda _: moves(),
    }
    ended = await world.play("fetch example.com", script)
    _, second, third = ended.asked("ExecutorStep")
    assert "say in the answer what is missing, else end with cannot" in second.user
    assert third.user.rstrip().endswith("If it cannot be done without what was withheld, end with cannot.")
    assert ended.result.stopped_by is StoppedBy.REFUSED_BY_USER


async def test_a_check_may_build_what_it_tests(world: World) -> None:
    """The person's own and the planner's: they run in a fork that goes, and nothing of them is left."""
    world.file("build.sh", "set -e\ncp a.txt built.o\ngrep -q good built.o\n")
    world.file("a.txt", "bad\n")
    builds: Json = {"text": "it builds", "check": {"check": "command_succeeds", "command": "bash build.sh"}}
    script = {"Plan": plan(subtask("mend a.txt", builds)), "ExecutorStep": [shell("echo good > a.txt; cat a.txt")]}
    ended = await world.play("Mend a.txt", script, options=world.options(checks=("bash build.sh",)))
    assert (ended.directive, ended.result.assurance) == ("accept", "checked")
    assert {each.decided_by for each in ended.verdicts} == {"check"}
    assert not any("built.o" in change.path for change in ended.result.changes.changes)


def _rent(world: World) -> tuple[Json, Json]:
    """A subtask of which the work is right and the check is not, and what R2 says of that check."""
    world.file("rent.txt", "Rent 890\nPower 64\n")
    wrong: Json = {
        "text": "the rent is 920",
        "check": {"check": "file_matches", "path": "rent.txt", "regex": r"\ARent 920\Z"},
    }
    right = {"check": "file_matches", "path": "rent.txt", "regex": "^Rent 920$"}
    amend: Json = {"criterion": "the rent is 920", "check": right, "reason": "there are more lines"}
    return {**subtask("set the rent to 920", tool="shell"), "success_criteria": [wrong]}, amend


async def test_a_wrong_check_takes_no_tool_away_and_is_named_as_its_own(world: World) -> None:
    """R2 is told whose check it is and what the worker said of it; the same plan may stand with another check."""
    task, amend = _rent(world)
    script: Script = {
        "Plan": [plan(task), {**replan(task), "amend": [amend]}],
        "ExecutorStep": [
            shell("sed -i s/890/920/ rent.txt", final=False),
            says("It is 920 now; no file of two lines can match that.", 1),
            shell("head -1 rent.txt"),
        ],
        "ValidationReport": judged(("pass", "Rent 920")),
    }
    ended = await world.play("Set the rent to 920.", script, config=world.config(control={"max_retries": 0}))
    assert ended.directives == ["break_symmetry", "accept"]
    judge = ended.asked("ValidationReport")[0].user
    assert "1. the rent is 920\n Its check failed, and who planned the work replaced it." in judge
    assert "\n It was: file_matches rent.txt \\ARent 920\\Z\n It found: " in judge
    assert "\n It is: file_matches rent.txt ^Rent 920$\n Reason given: there are more lines" in judge
    assert (
        "The check of a criterion was replaced after it failed: the rent is 920 (was: file_matches rent.txt"
        in facts(ended)
    )
    assert ended.one(PlanDirective).blocked_tools == () and not ended.all(PlanRefused)
    told = ended.asked("Plan")[1].user
    own = told.partition("Your own check, which may be what is wrong (")[2].partition("\n")[0]
    assert '"amend": [' in own and own.endswith("): the rent is 920")
    assert "Said by the worker: It is 920 now; no file of two lines can match that." in told
    assert "Must not use" not in told and [each.after.check for each in ended.result.amended] == ["file_matches"]


async def test_a_worker_disputes_a_check_once_and_the_planner_decides(world: World) -> None:
    """The refusal shows the check. A worker that changes nothing for it and says why is not refused a second time:
    R2 reads its reason and may replace the check.
    """
    task, amend = _rent(world)
    check: Json = {"check": "command_succeeds", "command": "grep -qx 'Rent: 920' rent.txt; test $? = 0"}
    task["success_criteria"] = [{"text": "the rent is 920", "check": check}]
    script: Script = {
        "Plan": [plan(task), {**replan(), "reply": "The rent was set to 920.", "amend": [amend]}],
        "ExecutorStep": [
            shell("sed -i s/890/920/ rent.txt", final=False),
            says("It is 920 now.", 1),
            says("The line has no colon, so the check is wrong: it is 920.", 1),
        ],
    }
    ended = await world.play("Set the rent to 920.", script)
    refusal = ended.asked("ExecutorStep")[2].user
    assert "grep -qx 'Rent: 920' rent.txt; test $? = 0" in refusal and "If the check is wrong" in refusal
    assert "Said by the worker: The line has no colon, so the check is wrong" in ended.asked("Plan")[1].user
    assert ended.directives[-1] == "success" and len(ended.result.amended) == 1


async def test_records_and_prompts_hold_no_colours(world: World) -> None:
    """Escape sequences are for a terminal: the model reads the words."""
    script = {
        "Plan": plan(subtask("look", tool="shell")),
        "ExecutorStep": [shell(r"printf '\033[1;32mgreen\033[0m\n'", final=False), says("green", 1)],
    }
    ended = await world.play("Look.", script)
    assert [call.output for call in ended.calls] == ["green\n"]
    assert "\x1b" not in ended.asked("ExecutorStep")[1].user


async def test_a_file_that_is_written_as_it_was_is_not_said_to_be_touched(world: World) -> None:
    """`git stash` and `git stash pop` write a changed file again: the second call has changed nothing."""
    world.file("a.txt", "one\n")
    script = {
        "Plan": plan(subtask("change a.txt", tool="shell")),
        "ExecutorStep": [
            shell("echo two > a.txt", final=False),
            shell("mv a.txt b.txt && cat b.txt > a.txt && rm b.txt; echo again > c.txt", final=False),
            says("Done.", 1),
        ],
    }
    ended = await world.play("Change a.txt.", script)
    names = [[path.rpartition("/")[2] for path in call.changes] for call in ended.calls]
    assert names == [["a.txt"], ["c.txt"]]


async def test_of_a_long_report_of_a_check_the_end_is_kept(world: World) -> None:
    """Tests say last what failed."""
    world.file("report.txt", "".join(f"line {number}\n" for number in range(2_000)) + "FAILED test_cart\n")
    builds: Json = {"check": "command_succeeds", "command": ": " + "x" * 1_900 + "; cat report.txt; false"}
    task = {**subtask("mend it"), "success_criteria": [{"text": "it builds", "check": builds}]}
    script: Script = {
        "Plan": [plan(task), {"reply": "It does not build."}],
        "ExecutorStep": [shell("touch b", final=False), says("Done.", 1)],
    }
    ended = await world.play("Mend it.", script, config=world.config(control={"max_retries": 0}))
    assert "FAILED test_cart" in ended.verdicts[0].evidence


@pytest.mark.parametrize("honest", [True, False])
async def test_a_check_that_was_replaced_passes_nothing_alone(world: World, honest: bool) -> None:
    """The work is wrong, and a check that lets it pass takes the other one's place: a judge reads the result, and
    where a worker looked at nothing it stays open. Whoever shows it says that the check was replaced."""
    world.file("b.cfg", "v=1\n")
    right: Json = {"check": "file_matches", "path": "b.cfg", "regex": "^v=3$"}
    amend: Json = {"criterion": "v is 3", "check": {**right, "regex": "^v="}, "reason": "blanks may stand there"}
    task = {**subtask("set v to 3", tool="shell"), "success_criteria": [{"text": "v is 3", "check": right}]}
    look = [shell("cat b.cfg", final=False), says("v is 3 now.", 1)] if honest else [says("v is 3 now.")]
    script: Script = {
        "Plan": [plan(task), {**replan(subtask("look at it")), "amend": [amend]}],
        "ExecutorStep": [shell("echo v=2 > b.cfg; cat b.cfg"), *look],
        **({"ValidationReport": judged(("fail", "v=2")), "FailureReport": moves()} if honest else {}),
    }
    config = world.config(control={"max_retries": 0, "max_replans": 1})
    ended = await world.play("Set v to 3.", script, config=config)
    assert ended.result.assurance == "unverified" and ended.directive == ("abandon" if honest else "success")
    assert [each.criterion for each in ended.result.unmet] == (["v is 3"] if honest else [])
    assert "v is 3" in ended.result.open or honest
    (fact,) = [each for each in ended.result.facts if isinstance(each, CheckAmended)]
    assert (fact,) == ended.result.amended and fact.failed == "b.cfg has no match of '^v=3$': v=2"
    assert "(was: file_matches b.cfg ^v=3$; is: file_matches b.cfg ^v=; reason: blanks may stand" in facts(ended)


async def test_a_check_is_amended_beside_a_reply_too(world: World) -> None:
    """The work is right and its check was not: R2 may say so and answer at once, without work that nobody needs. A
    reply does nothing, so nobody has looked: the criterion is open."""
    task, amend = _rent(world)
    script: Script = {
        "Plan": [plan(task), {**replan(), "reply": "The rent was set to 920.", "amend": [amend]}],
        "ExecutorStep": [shell("sed -i s/890/920/ rent.txt", final=False), says("It is 920 now.", 1)],
    }
    ended = await world.play("Set the rent to 920.", script, config=world.config(control={"max_retries": 0}))
    assert [each.after.check for each in ended.result.amended] == ["file_matches"]
    assert (ended.directives, ended.result.output) == (["break_symmetry", "success"], "The rent was set to 920.")
    assert (ended.result.assurance, ended.result.open[0]) == ("unverified", "the rent is 920")
    assert "Verified in part" not in facts(ended) and "Not verified: the rent is 920" in facts(ended)
    assert "The check of a criterion was replaced after it failed: the rent is 920 (was: " in facts(ended)


@pytest.mark.parametrize("persons", [False, True])
async def test_who_gives_up_before_a_wrong_check_does_not_end_the_task(world: World, persons: bool) -> None:
    """The work is done and its author says that the check cannot hold, which a judge confirms: what can be mended
    is the check, by R2 that wrote it. It was told that the task cannot be done. A person's check nobody replaces.
    """
    task, amend = _rent(world)
    again: list[Json] = [] if persons else [{**replan(), "reply": "The rent was set to 920.", "amend": [amend]}]
    script: Script = {
        "Plan": [plan(task), *again],
        "ExecutorStep": [shell("sed -i s/890/920/ rent.txt", final=False), gives_up("two lines cannot be one")],
        "ValidationReport": judged(("pass", "920")),
    }
    options = world.options(checks=("grep -qx 'Rent: 920' rent.txt",) if persons else ())
    ended = await world.play("Set the rent to 920.", script, options=options)
    if persons:
        assert ended.result.stopped_by is StoppedBy.MISSING_INPUT
    else:
        assert ended.directives[-1] == "success" and len(ended.result.amended) == 1
        assert "two lines cannot be one" in ended.asked("Plan")[1].user


async def test_an_answer_with_a_figure_from_nowhere_takes_no_tool_away(world: World) -> None:
    """Its words are refused; the program that it ran did what it should, and later rounds and tasks may use it."""
    world.file("a.txt", "one\ntwo\n")
    script = {
        "Plan": [plan(subtask("count")), replan(subtask("count again"))],
        "ExecutorStep": [
            shell("wc -l < a.txt", final=False),
            says("7 lines", 1),
            says("8 lines", 1),
            shell("wc -l < a.txt"),
        ],
    }
    ended = await world.play("How many lines has a.txt?", script)
    assert ended.result.output == "2"
    directive = ended.one(PlanDirective)
    assert (directive.blocked_tools, directive.blocked_targets) == ((), ())
    assert not [written for written in ended.all(MemoryWritten) if written.sigma < 0]


def _delivered(output: str, answer: str, printed: str = "") -> FinalResult:
    """The end of a task whose only call failed."""
    call = ToolCall(
        tool="shell",
        identity=("shell:sh",),
        input="sh check.sh",
        status=CallStatus.ERROR,
        exit_code=1,
        error_output=printed,
    )
    outcome = SubTaskOutcome(
        subtask_id="1", parent_task_id="t", status="matched", output=output, tool_calls=(call,)
    )
    standing = EndState(FinalResult(task_id="t", summary="", directive=Directive.ACCEPT), "check it")
    end = ReplanRequest(task_id="t", outcomes=(outcome,), merged_output=answer)
    return Endings(cast(Asker, None)).delivered(standing, end, Directive.ACCEPT)


async def test_a_comparison_that_finds_a_difference_has_not_failed(world: World) -> None:
    """`diff` ends with 1: neither the person nor the judge is told that this is an error."""
    verdict = {"number": 1, "quote": "> two", "verdict": "pass"}
    script: Script = {
        "Plan": plan(subtask("compare them", "the difference is told", tool="shell")),
        "ExecutorStep": [
            shell("printf 'one\\n' > a; printf 'two\\n' > b; diff a b", final=False),
            says("a says one, b says two.", 1),
        ],
        "ValidationReport": {"verdicts": [verdict]},
    }
    ended = await world.play("What differs between a and b?", script)
    assert ended.result.output == "a says one, b says two."
    (asked,) = ended.asked("ValidationReport")
    assert "exit 1]" in asked.user
    assert not any(isinstance(fact, FailedLast) for fact in ended.result.facts)


async def test_of_several_steps_in_a_text_the_first_is_taken(world: World) -> None:
    """A bare block alone would be the answer; beside others it is a call, and the next turn knows of that alone."""
    two = Reply(text="```bash\necho one > a\n```\n```bash\necho one > b\n```")
    ended = await _told_of_two(world, two, refuse=["native"])
    assert len(ended.calls) == 1 and "> b" not in str(ended.asked("ExecutorStep")[1].body)


async def _told_of_two(world: World, two: Reply, refuse: Sequence[str] = ()) -> Ended:
    script: Script = {
        "Plan": plan(subtask("write both", exists("a"), tool="shell")),
        "ExecutorStep": [two, says("They are written.", 1)],
    }
    return await world.play("Write a and b.", script, refuse=refuse)
