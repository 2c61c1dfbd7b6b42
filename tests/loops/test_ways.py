"""How a task is worked on, whatever is asked and in whatever language, and who may demand what."""

from __future__ import annotations

import pytest
from scenario import (
    Each,
    Script,
    World,
    exists,
    gives_up,
    judged,
    matches,
    merged,
    plan,
    read,
    replan,
    reply,
    says,
    shell,
    subtask,
    write,
)

from artoo.contracts.criteria import CheckAmended
from artoo.contracts.execution import CorrectionSignal, SubTaskOutcome
from artoo.contracts.findings import Unconfirmed
from artoo.contracts.plan import Plan
from artoo.contracts.solution import FinalResult, OutcomeSummary
from artoo.llm.wires.how import ServerTraits

PAGE = "<!doctype html><title>Tea</title>"


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        ("Make a web page site/index.html", "Made."),
        ("Faça uma página web em site/index.html", "Feito."),
        ("做一个网页 site/index.html", "已完成。"),
    ],
)
async def test_every_language_takes_the_same_way(world: World, request_: str, answer: str) -> None:
    """The same roles are asked the same things in the same order, and nothing but the planner demands anything."""
    script = {
        "Plan": plan(subtask("page"), criteria=["There is a page."]),
        "ExecutorStep": [write("site/index.html", PAGE, final=False), says(answer, 1)],
        "ValidationReport": judged(("pass", "site/index.html")),
    }
    ended = await world.play(request_, script)
    assert ended.contracts == ["Plan", "ExecutorStep", "ExecutorStep", "ValidationReport"]
    assert (ended.directive, ended.result.output, ended.result.assurance) == ("accept", answer, "judged")
    assert [each.text for each in ended.one(Plan).task_criteria] == ["There is a page."]
    assert not ended.all(CorrectionSignal)


async def test_a_plan_without_criteria_is_held_to_the_request(world: World) -> None:
    """Code writes none in its place, and the planner is not asked again: the request itself is the criterion."""
    script = {
        "Plan": plan(subtask("page"), criteria=()),
        "ExecutorStep": write("a.html", PAGE),
        "ValidationReport": judged(("pass", "a.html")),
    }
    ended = await world.play("Make a.html", script)
    assert [each.text for each in ended.one(Plan).task_criteria] == ["Make a.html"]
    assert ended.contracts == ["Plan", "ExecutorStep", "ValidationReport"]
    assert (ended.directive, ended.result.assurance) == ("accept", "judged")


async def test_a_reply_names_the_files_that_it_was_shown(world: World) -> None:
    """Only those that the request or the answer names: that a file lies there says nothing about the answer."""
    world.file("brief.txt", "Der Umweg kostet uns vierzig Minuten.\n")
    world.file("other.txt", "x\n")
    ended = await world.play(
        "Translate brief.txt into English.", {"Plan": reply("The detour costs forty minutes.")}
    )
    assert ended.result.facts[0] == Unconfirmed(looked=False, files=("brief.txt",))
    ended = await world.play("What is the capital of Australia?", {"Plan": reply("Canberra.")})
    assert ended.result.facts[0] == Unconfirmed(looked=False)


async def test_the_roles_of_a_task_share_the_beginning_of_their_prompts(world: World) -> None:
    """Laws, files and request are the same for planner and executor; a judge is shown what it judges alone."""
    world.file("brief.txt", "Der Umweg kostet uns vierzig Minuten.\n")
    script = {
        "Plan": plan(subtask("translate"), criteria=["it says in English what brief.txt says"]),
        "ExecutorStep": [shell("true", final=False), says("The detour costs us forty minutes.")],
        "ValidationReport": judged(("pass", "Der Umweg kostet uns vierzig Minuten.")),
    }
    ended = await world.play("Translate brief.txt.", script)
    prompts = [ended.asked(name)[0] for name in ("Plan", "ExecutorStep")]
    begun = {asked.user.partition("\n\nRole: ")[0] for asked in prompts}
    assert len(begun) == 1 and "Der Umweg" in begun.pop()
    assert len({asked.system.partition("\n\ncontract: ")[0] for asked in prompts}) == 1


async def test_talk_takes_one_call(world: World) -> None:
    """A reply of the planner's is the answer: unverified, the model's own words, and nothing was looked at."""
    ended = await world.play("What is the capital of Australia?", {"Plan": reply("Canberra.")})
    assert ended.contracts == ["Plan"] and not ended.calls
    assert (ended.directive, ended.result.summary, ended.result.assurance) == ("success", "Canberra.", "unverified")
    assert ended.result.open == ("What is the capital of Australia?",) and len(ended.result.facts) == 1
    assert ended.one(OutcomeSummary).outcomes == ()


async def test_a_reply_about_this_machine_is_refused(world: World) -> None:
    """A reply that speaks of a file that is here was looked up by nobody: a round without success, then work."""
    world.file("notes.txt", "tea\n" * 25)
    script = {
        "Plan": [reply("notes.txt holds 12 lines."), replan(subtask("count", tool="shell"))],
        "ExecutorStep": shell("wc -l < notes.txt"),
        "ValidationReport": judged(("pass", "25")),
    }
    ended = await world.play("How long is notes.txt?", script)
    assert ended.directives[-1] == "accept" and ended.result.output == "25"
    assert "Not met" in ended.asked("Plan")[1].user


async def test_a_judge_sees_what_the_executor_was_shown(world: World) -> None:
    """A file that is shown whole may be translated without a call; whoever judges that must have seen it too."""
    world.file("brief.txt", "Der Umweg kostet uns vierzig Minuten.\n")
    script: Script = {
        "Plan": plan(subtask("translate"), criteria=["en.txt says in English what brief.txt says"]),
        "ExecutorStep": write("en.txt", "The detour costs us forty minutes."),
        "ValidationReport": judged(("pass", "Der Umweg kostet uns vierzig Minuten.")),
    }
    ended = await world.play("Translate brief.txt into English, as en.txt", script)
    assert (ended.directive, ended.result.assurance) == ("accept", "judged")
    reading = [read("brief.txt", final=False), write("en.txt", "The detour costs us forty minutes.")]
    again = await world.play("Translate brief.txt into English, as en.txt", {**script, "ExecutorStep": reading})
    (asked,) = again.asked("ValidationReport")
    assert asked.user.count("Der Umweg") == 1


async def test_what_cannot_be_done_is_said(world: World) -> None:
    """`cannot` after a look ends the task honestly, without another round; the reason is the answer, once, and no
    criterion is told as if work on it had failed.
    """
    world.file("a.txt", "x\n")
    script = {
        "Plan": plan(subtask("add it up"), criteria=["the sum"]),
        "ExecutorStep": [shell("ls", final=False), gives_up("there is no sales.csv here")],
        "ValidationReport": judged(("pass", "a.txt")),
    }
    ended = await world.play("What is the sum in sales.csv?", script)
    assert (ended.directive, ended.result.stopped_by) == ("abandon", "missing_input")
    assert ended.result.output == "there is no sales.csv here" and ended.told.count("no sales.csv") == 1
    assert ended.told.splitlines()[:2] == ["As far as artoo has seen, it cannot be done here.", ended.result.output]
    assert "What was reached" not in ended.told and "Not met" not in ended.told
    assert [(each.criterion, each.impossible) for each in ended.result.unmet] == [("the sum", True)]
    assert ended.all(SubTaskOutcome)[0].hopeless and ended.directives == ["abandon"]


async def test_what_holds_though_it_cannot_be_done_is_no_failure(world: World) -> None:
    """A check of what is there that succeeds passes; one of the answer says nothing of a reason, and the rest is
    unmet.
    """
    world.file("report.txt", "x\n")
    there, answer = exists("report.txt"), matches("sales", "the answer names sales")
    script = {
        "Plan": plan(subtask("add it up"), criteria=[there, answer, "the sum"]),
        "ExecutorStep": [shell("ls", final=False), gives_up("there is no sales.csv here")],
        "ValidationReport": judged(("pass", "report.txt")),
    }
    ended = await world.play("Add up sales.csv in report.txt.", script)
    found = {each.criterion: (each.verdict, each.decided_by) for each in ended.verdicts}
    assert found["report.txt exists"] == ("open", "nobody")  # it was there before
    assert found["the answer names sales"] == found["the sum"] == ("fail", "fact")
    assert {each.criterion for each in ended.result.unmet} == {"the answer names sales", "the sum"}
    assert ended.result.stopped_by == "missing_input"
    again = await world.play(
        "Add up sales.csv in report.txt.", {**script, "Plan": plan(subtask("add it up"), criteria=[there])}
    )
    assert (again.directive, again.result.stopped_by) == ("abandon", "missing_input")
    assert again.result.done == ()


async def test_of_what_was_reached_the_part_that_cannot_be_done_is_told_apart(world: World) -> None:
    """The answer is what was reached; why the rest cannot be done stands before it, and is no unmet criterion."""
    world.file("a.txt", "tea 4\n")
    script = {
        "Plan": plan(subtask("read it", matches("tea")), subtask("add it up", sequence=2), criteria=["the sum"]),
        "ExecutorStep": [read("a.txt"), shell("ls", final=False), gives_up("there is no sales.csv here")],
        "ValidationReport": judged(("pass", "a.txt")),
    }
    ended = await world.play("Read a.txt and add up sales.csv.", script)
    assert (ended.directive, ended.result.output) == ("abandon", "tea 4")
    first, *rest = ended.told.splitlines()
    assert first == "As far as artoo has seen, a part of it cannot be done here: there is no sales.csv here"
    assert "tea 4" in rest and "Not met" not in ended.told


async def test_a_final_call_that_fails_is_tried_again_at_once(world: World) -> None:
    """No correction is spent on a program that stopped: its error stands in the record for the next step."""
    world.file("a.txt", "x\n")
    script = {"Plan": plan(subtask("show")), "ExecutorStep": [shell("cat b.txt"), shell("cat a.txt")]}
    ended = await world.play("Show the file", script)
    assert ended.directive == "accept" and not ended.all(CorrectionSignal)
    second = ended.asked("ExecutorStep")[1].user
    assert "[1] stderr: cat: b.txt" in second and "exit 1" in second and "it is no answer" in second


async def test_several_subtasks_make_one_answer(world: World) -> None:
    """The merge is an answer to what was asked; the parts' outputs do not appear, and what none of them says is
    asked about once."""
    world.file("one.txt", "a\n" * 22)
    world.file("two.txt", "c\n")
    script = {
        "Plan": plan(subtask("count one"), subtask("count two"), criteria=["which is longer"]),
        "ExecutorStep": Each.of(count_one=shell("wc -l < one.txt"), count_two=shell("wc -l < two.txt")),
        "MergeReport": [
            merged("one.txt is longer, by 40 lines."),
            merged("one.txt is longer: 22 lines against 1.", ("pass", "22")),
        ],
    }
    ended = await world.play("Which is longer, one.txt or two.txt?", script)
    assert ended.result.output == "one.txt is longer: 22 lines against 1."
    assert "40" in ended.asked("MergeReport")[1].user.rpartition("in no result")[2]
    assert (ended.directive, ended.result.assurance) == ("accept", "judged")


async def test_a_check_that_cannot_hold_is_amended_once(world: World) -> None:
    """R2 may replace a check of its own that failed, with a reason; the criterion's text stays, and the result says
    what was replaced."""
    wrong = exists("report.txt")
    amend = {
        "criterion": wrong["text"],
        "check": {"check": "file_exists", "path": "report.md"},
        "reason": "the project's reports are Markdown",
    }
    script: Script = {
        "Plan": [
            plan(subtask("write it"), criteria=[wrong]),
            {"subtasks": [subtask("write it as Markdown")], "task_criteria": [], "amend": [amend]},
        ],
        "ExecutorStep": [write("report.md", "# Report"), write("report.md", "# Report\n")],
        "ValidationReport": judged(("pass", "# Report")),
    }
    config = world.config(control={"max_retries": 0})
    ended = await world.play("Write the report", script, config=config)
    replaced = ended.one(CheckAmended)
    assert (replaced.criterion, replaced.reason) == (wrong["text"], "the project's reports are Markdown")
    assert ended.one(FinalResult).amended == (replaced,) and ended.directive == "accept"
    assert {each.text for each in ended.all(Plan)[1].task_criteria} == {wrong["text"]}


async def test_a_persons_check_is_never_amended(world: World) -> None:
    """What the person asked for stands, whatever the planner says about it."""
    amend = {
        "criterion": "`test -e b.txt` succeeds",
        "check": {"check": "command_succeeds", "command": "true"},
        "reason": "b.txt is not needed",
    }
    second = {"subtasks": [subtask("again")], "task_criteria": [], "amend": [amend]}
    script = {
        "Plan": [plan(subtask("make a"), criteria=()), second],
        "ExecutorStep": [write("a.txt", "a"), shell("echo b > b.txt; ls b.txt")],
    }
    options = world.options(checks=("test -e b.txt",))
    ended = await world.play("Make it", script, config=world.config(control={"max_retries": 0}), options=options)
    assert not ended.all(CheckAmended) and ended.directive == "accept"


async def test_what_waits_for_a_yes_is_said_to_be_prepared(world: World) -> None:
    """The executor is told ahead that a deletion is pending: a call may be the answer."""
    world.file("old.txt", "x")
    world.file("kept.txt", "y")
    script = {
        "Plan": plan(subtask("tidy up")),
        "ExecutorStep": [shell("rm old.txt; echo z >> kept.txt", final=False), says("It is prepared.", 1)],
    }
    ended = await world.play("Delete old.txt", script)
    first, second = ended.asked("ExecutorStep")
    assert "If something is changed or deleted, nothing of it takes effect" in first.user
    assert "say that it is prepared" in first.user and "Because something" not in second.user


@pytest.mark.parametrize(("line", "waits"), [("delete other.*", True), ("delete old.*", False)])
async def test_a_permission_silences_the_caution_for_its_own_paths_only(
    world: World, line: str, waits: bool
) -> None:
    """A deletion that no line covers is said to wait, although deletions of other paths are permitted."""
    world.file("old.txt", "x")
    script: Script = {
        "Plan": plan(subtask("tidy up"), subtask("say what was done", sequence=2)),
        "ExecutorStep": [shell("rm old.txt; echo gone"), shell("echo done")],
    }
    ended = await world.play("Delete old.txt", script, options=world.options(allow=(line,)))
    assert ended.result.changes.state == ("pending" if waits else "applied")
    assert ("Because something is deleted" in ended.asked("ExecutorStep")[1].user) == waits


async def test_an_answer_that_tells_of_a_failure_in_other_words_is_a_judges_to_read(world: World) -> None:
    """Code cannot read the words: it names the call once, and does not refuse what is said again."""
    script = {
        "Plan": plan(subtask("list the jobs")),
        "ExecutorStep": [
            shell("echo 'no crontab for u' >&2; exit 3", final=False),
            says("You have no cron jobs.", 1),
            says("You have no cron jobs.", 1),
        ],
        "ValidationReport": judged(("pass", "exit 3")),
    }
    ended = await world.play("Which cron jobs do I have?", script)
    assert ended.result.output == "You have no cron jobs."
    corrected = ended.asked("ExecutorStep")[-1].user
    assert "shell [1] failed: exit 3: no crontab for u" in corrected and "or say what it printed" in corrected
    assert ended.result.assurance == "unverified"


async def test_what_earlier_rounds_did_is_told(world: World) -> None:
    """After a replan the executor and its judge know what the task has changed before, and that it waits."""
    world.file("a.txt", "1\n")
    script: Script = {
        "Plan": [plan(subtask("mend it"), criteria=["a.txt is mended"]), replan(subtask("a.txt is mended: look"))],
        "ExecutorStep": [
            shell("echo 2 > a.txt; echo b > b.txt", final=False),
            says("It is mended.", 1),
            shell("cat a.txt", final=False),
            says("It is mended, and waits.", 1),
        ],
        "ValidationReport": [judged(("fail", "")), judged(("pass", "changed: a.txt"))],
    }
    ended = await world.play("Mend a.txt", script, config=world.config(control={"max_retries": 0}))
    first, _, third, _ = ended.asked("ExecutorStep")
    assert (
        "before your subtask" not in first.user and "\n\nCaution:\nIf something is changed" in f"\n\n{first.user}"
    )
    assert "Done in this task before your subtask:\ncreated: b.txt\nchanged: a.txt\n" in third.user
    assert "Because something is changed" in third.user and "If something" not in third.user
    assert "Done in this task so far:\ncreated: b.txt\nchanged: a.txt" in ended.asked("Plan")[1].user
    for rounds in (ended.asked("Plan"), (first, third)):  # what was on disk at first stands there in every round
        assert len({asked.user.partition("\n\nRequest:")[0] for asked in rounds}) == 1
        assert "Files as they are now:\nAll of a.txt:\n2" in rounds[1].user
    before, now = ended.asked("ValidationReport")
    assert "Changed by this task:\n--- a.txt before" in before.user
    assert "Changed by this task before this subtask:\ncreated: b.txt\nchanged: a.txt\n" in now.user
    assert "Changed by this subtask: nothing" in now.user
    assert ended.directive == "accept"


async def test_a_judge_is_told_of_a_named_file_that_is_not_there(world: World) -> None:
    """An answer that says a file was added takes its name from the request: no token of it stands nowhere."""
    world.file("a.toml", "version = 1\n")
    script: Script = {
        "Plan": [
            plan(subtask("bump a.toml and add NEWS.md"), criteria=["Both are done"]),
            replan(subtask("NEWS.md is not there: add it")),
        ],
        "ExecutorStep": [
            shell("echo 'version = 2' > a.toml; cat a.toml", final=False),
            says("a.toml is bumped and NEWS.md is added.", 1),
            write("NEWS.md", "two", final=False),
            says("NEWS.md is added.", 1),
        ],
        "ValidationReport": [judged(("fail", "")), judged(("pass", "NEWS.md"))],
    }
    ended = await world.play("Bump a.toml, add NEWS.md", script, config=world.config(control={"max_retries": 0}))
    before, now = ended.asked("ValidationReport")
    assert "no such file is there now: NEWS.md" in before.user and "no such file" not in now.user
    assert ended.directive == "accept"


async def test_a_small_model_is_asked_for_programs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No planner is asked, no form has to be chosen, a corrected attempt changes its language, and nothing is
    planned again; what nothing confirmed is unverified."""
    monkeypatch.setattr(ServerTraits, "is_small", property(lambda self: True))
    world.file("a.txt", "x\ny\n")
    config = world.config(control={"without": ["second_way"]})
    ended = await world.play(
        "How many lines has a.txt?", {"ExecutorStep": "I count.\n```bash\nwc -l < a.txt\n```"}, config=config
    )
    assert ended.contracts == ["ExecutorStep"] and "Role: programmer" in ended.asked("ExecutorStep")[0].system
    assert (ended.directive, ended.result.output, ended.result.assurance) == ("success", "2", "unverified")
    answers = [f"```bash\nexit {code}\n```" for code in range(3, 6)]
    ended = await world.play("How many lines has b.txt?", {"ExecutorStep": list(answers)}, config=config)
    assert ended.directive == "abandon" and ended.directives == ["abandon"]
