"""What a whole task says of an answer that checks, records or a judge do not bear out."""

from __future__ import annotations

import pytest
from scenario import Json, Script, World, exists, judged, plan, read, says, shell, subtask, write

from artoo.contracts.execution import CorrectionSignal, SubTaskOutcome
from artoo.contracts.findings import ByJudge, FailedLast, LeftOpen, NotThere, Unchanged, Unread
from artoo.words.result import result_words

REPORT: Json = {"text": "the report is made", "check": {"check": "file_exists", "path": "report.txt"}}


async def test_a_check_that_held_before_the_work_vouches_for_nothing(world: World) -> None:
    """The file was there, nothing was done, and the answer claims it: nothing of that is called checked."""
    world.file("report.txt", "old\n")
    script = {"Plan": plan(subtask("Make the report.", REPORT)), "ExecutorStep": says("The report is made.")}
    ended = await world.play("Make the report.", script)
    assert (ended.directive, ended.result.assurance) == ("success", "unverified")
    assert ended.result.open == ("the report is made",)
    (opened,) = (fact for fact in ended.result.facts if isinstance(fact, LeftOpen))
    assert opened.found is not None and (opened.found.found, opened.found.subject) == (
        "held_before",
        "file_exists report.txt",
    )


async def test_a_judge_reads_what_a_check_that_held_before_leaves_open(world: World) -> None:
    """Work was done; the planner's check cannot tell it from none, and the judge can. The check is slow, and the
    work waits until it has seen the file before the work."""
    world.file("report.txt", "old\n")
    slow: Json = {
        "text": "it is new",
        "check": {"check": "command_succeeds", "command": "sleep 0.5; test -s report.txt"},
    }
    script = {
        "Plan": plan(subtask("Renew the report.", slow)),
        "ExecutorStep": [shell("echo new > report.txt", final=False), says("The report is new.")],
        "ValidationReport": judged(("pass", "+new")),
    }
    ended = await world.play("Renew the report.", script)
    assert (ended.directive, ended.result.assurance) == ("accept", "judged")
    assert ByJudge(same=True) in ended.result.facts
    assert "the model that did the work" in result_words("en").fact(ByJudge(same=True))


async def test_a_result_prints_what_was_checked(world: World) -> None:
    """And not the words that the planner gave it."""
    script = {"Plan": plan(subtask("Make it.", REPORT)), "ExecutorStep": write("report.txt", "new\n")}
    ended = await world.play("Make the report.", script)
    assert (ended.directive, ended.result.assurance) == ("accept", "checked")
    (unread,) = (fact for fact in ended.result.facts if isinstance(fact, Unread))
    assert unread.checks == ("file_exists report.txt",)


async def test_a_persons_own_check_always_decides(world: World) -> None:
    """It held before the work too, and is what the person wants to know."""
    world.file("report.txt", "old\n")
    script = {"Plan": plan(subtask("Look at it."), criteria=()), "ExecutorStep": read("report.txt")}
    ended = await world.play("Look.", script, options=world.options(checks=("test -s report.txt",)))
    assert (ended.directive, ended.result.assurance) == ("accept", "checked")


async def test_a_check_without_a_verdict_goes_to_the_judge(world: World) -> None:
    """It fails nothing, corrects nobody, and is told beside what stays open."""
    lint: Json = {"text": "linted", "check": {"check": "command_succeeds", "command": "no-such-linter a.txt"}}
    script = {
        "Plan": plan(subtask("Make it.", lint)),
        "ExecutorStep": shell("echo hi > a.txt; cat a.txt"),
        "ValidationReport": judged(("pass", "hi")),
    }
    ended = await world.play("Make a.txt.", script)
    assert (ended.directive, ended.result.assurance) == ("accept", "judged")
    assert not ended.all(CorrectionSignal)


async def test_an_expression_that_cannot_be_used_is_told_to_no_worker(world: World) -> None:
    """It can change the answer, and not the planner's check."""
    slow: Json = {"text": "it is long", "check": {"check": "output_matches", "regex": "a" * 2_001}}
    script = {
        "Plan": plan(subtask("Say it.", slow)),
        "ExecutorStep": shell("date +%Y | sed s/^/in/"),
        "ValidationReport": judged(("pass", "in20")),
    }
    ended = await world.play("Say it.", script)
    assert ended.directive == "accept" and not ended.all(CorrectionSignal)


async def test_a_later_look_does_not_prove_an_act_that_failed(world: World) -> None:
    """One correction names the call; said again a judge reads it, and the failure stands beside the answer."""
    world.file("a", "x\n")
    claim = says("It was copied.")
    script: Script = {
        "Plan": plan(subtask("Copy it.")),
        "ExecutorStep": [shell("cp a b; exit 3", final=False), shell("ls", final=False), claim, claim],
        "ValidationReport": judged(("pass", "exit 3")),
    }
    ended = await world.play("Copy it.", script)
    (correction,) = ended.all(CorrectionSignal)
    assert correction.what_was_wrong.startswith("shell [1] failed: exit 3")
    assert (ended.directive, ended.result.assurance) == ("success", "unverified")
    assert [fact.command for fact in ended.result.facts if isinstance(fact, FailedLast)] == ["cp a b; exit 3"]


@pytest.mark.parametrize("command", ["cp a /gone/b || true", "cp a /gone/b 2>&1 | cat; echo ok"])
async def test_an_error_does_not_hide_behind_an_exit_code(world: World, command: str) -> None:
    """The command's own form lets it end with 0."""
    world.file("a", "x\n")
    script = {
        "Plan": plan(subtask("Copy it.")),
        "ExecutorStep": [shell(command, final=False), says("It was copied."), shell("cp a b; cat b")],
    }
    ended = await world.play("Copy it.", script)
    (correction,) = ended.all(CorrectionSignal)
    assert "that its exit code does not show" in correction.what_was_wrong
    assert ended.directive == "accept"


@pytest.mark.parametrize(("quote", "times"), [("z", 2), ("the moon is green", 2), ("7", 1)])
async def test_a_discarded_quote_never_turns_a_fail_into_a_pass(world: World, quote: str, times: int) -> None:
    """The judge is asked once more for it; a quote that is a whole line counts, however short it is."""
    world.file("n.txt", "7\n")
    fail = {"verdicts": [{"number": 1, "quote": quote, "verdict": "fail", "reason": "it is another number"}]}
    script: Script = {
        "Plan": [plan(subtask("Tell it.", "it is eight")), {"question": "Which one?"}],
        "ExecutorStep": shell("cat n.txt | cat"),
        "ValidationReport": [fail] * times,
    }
    ended = await world.play("Tell it.", script, config=world.config(control={"max_retries": 0}))
    assert ended.one(SubTaskOutcome).status == "failed" and len(ended.asked("ValidationReport")) == times
    assert ended.directive == "abandon"


async def test_a_right_quote_at_the_second_time_counts(world: World) -> None:
    """The question says which verdict lacks it."""
    world.file("n.txt", "seven\n")
    script = {
        "Plan": plan(subtask("Tell it.", "it is seven")),
        "ExecutorStep": shell("cat n.txt | cat"),
        "ValidationReport": [judged(("pass", "it says seven")), judged(("pass", "seven"))],
    }
    ended = await world.play("Tell it.", script)
    assert (ended.directive, ended.result.assurance) == ("accept", "judged")
    assert "Of verdict 1 the quote was missing" in ended.asked("ValidationReport")[1].user


async def test_what_code_knows_of_files_stands_beside_the_answer(world: World) -> None:
    """That none was changed, and which are not there or hold nothing."""
    world.file("empty.csv", "")
    script = {
        "Plan": plan(subtask("Make out.csv and empty.csv.")),
        "ExecutorStep": [shell("date +%Y", final=False), says("out.csv and empty.csv are made.")],
    }
    ended = await world.play("Make out.csv and empty.csv.", script)
    facts = ended.result.facts
    assert Unchanged() in facts
    assert NotThere(paths=("out.csv",)) in facts and NotThere(paths=("empty.csv",), empty=True) in facts
    told = [result_words("zh").fact(fact) for fact in facts]
    assert {"没有更改任何文件。", "不存在：out.csv", "空文件：empty.csv"} <= set(told)


async def test_a_failure_stands_beside_the_answer_whatever_is_said_of_it(world: World) -> None:
    """No list of an answer takes it away."""
    world.file("t", "a\nb\nc\n")
    answer: Json = {"tool": "answer", "sources": [2], "failures": [2], "input": "3 tests failed, as was asked."}
    script = {
        "Plan": plan(subtask("Run them.", exists("log"))),
        "ExecutorStep": [write("log", "x\n", final=False), shell("wc -l < t; exit 1", final=False), answer],
    }
    ended = await world.play("Run the tests.", script)
    (failed,) = (fact for fact in ended.result.facts if isinstance(fact, FailedLast))
    assert failed.command == "wc -l < t; exit 1"


GOOD: Json = {"text": "a.txt is good", "check": {"check": "command_succeeds", "command": "grep -q good a.txt"}}
KEPT: Json = {"text": "b.txt stays", "check": {"check": "command_succeeds", "command": "test -s b.txt"}}


async def test_a_check_that_held_and_holds_decides_beside_one_that_shows_work(world: World) -> None:
    """Such as that the tests still pass: nobody is asked about it where another check did not hold before."""
    world.file("b.txt", "x\n")
    script = {"Plan": plan(subtask("Make it good.", GOOD, KEPT)), "ExecutorStep": write("a.txt", "good\n")}
    ended = await world.play("Make a.txt good.", script)
    assert (ended.directive, ended.result.assurance, ended.result.open) == ("accept", "checked", ())


async def test_a_check_of_contents_outweighs_a_call_that_fell_short(world: World) -> None:
    """Nobody is corrected and nobody is asked; the call stands beside the answer."""
    script = {
        "Plan": plan(subtask("Make it good.", GOOD)),
        "ExecutorStep": [shell("echo good > a.txt; cp gone b", final=False), says("It is good now.")],
    }
    ended = await world.play("Make a.txt good.", script)
    assert (ended.directive, ended.result.assurance) == ("accept", "checked")
    assert not ended.all(CorrectionSignal)
    assert [fact.command for fact in ended.result.facts if isinstance(fact, FailedLast)]


async def test_a_judge_reads_at_once_what_a_look_did_not_find(world: World) -> None:
    """That is no failure of the work: its author is not told to do it in another way."""
    script = {
        "Plan": plan(subtask("Tell it.", "It is told")),
        "ExecutorStep": [read("gone.txt", final=False), says("There is no such file.")],
        "ValidationReport": judged(("pass", "gone.txt"), ("pass", "gone.txt")),
    }
    ended = await world.play("What does gone.txt say?", script)
    assert not ended.all(CorrectionSignal)
    assert (ended.directive, ended.result.assurance) == ("success", "unverified")
