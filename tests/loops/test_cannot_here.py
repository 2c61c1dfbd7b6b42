"""What is lacking: the judge's fail names the way, and what it has said once is not asked again."""

from __future__ import annotations

from scenario import Json, Script, World, gives_up, plan, says, shell, subtask

from artoo.contracts.execution import CorrectionSignal, SubTaskOutcome
from artoo.contracts.solution import StoppedBy

_REQUEST = "Which notice period does vertrag.pdf have?"
_PERIOD = "the notice period is told"


def lacking(what_to_do: str = "", quote: str = "notiz.txt") -> Json:
    """A judge that says that the world lacks something."""
    verdict = {
        "number": 1,
        "quote": quote,
        "verdict": "fail",
        "failure_class": "environmental",
        "reason": "no file",
    }
    return {"verdicts": [verdict], "what_to_do": what_to_do}


async def test_an_honest_answer_is_told_the_way_and_judged_once(world: World) -> None:
    """Three answers were refused without a word of `cannot`; what the judge has said is not asked a second time."""
    world.file("notiz.txt", "hallo\n")
    script = {
        "Plan": plan(subtask("find it", _PERIOD)),
        "ExecutorStep": [shell("ls", final=False), says("vertrag.pdf is not here.", 1), gives_up("no vertrag.pdf")],
        "ValidationReport": lacking(),
    }
    ended = await world.play(_REQUEST, script)
    assert ended.result.stopped_by is StoppedBy.MISSING_INPUT
    assert ended.one(CorrectionSignal).what_to_do == "If it cannot be done here, end with cannot."
    assert len(ended.contracts) == 5


async def test_a_way_to_try_is_told_beside_it_and_the_next_report_is_judged(world: World) -> None:
    """It was not the judge's last word."""
    world.file("notiz.txt", "hallo\n")
    script = {
        "Plan": plan(subtask("find it", _PERIOD)),
        "ExecutorStep": [shell("ls", final=False), says("It is not here.", 1), gives_up("no vertrag.pdf")],
        "ValidationReport": [
            lacking("Look in docs."),
            {"verdicts": [{"number": 1, "quote": "notiz", "verdict": "pass"}]},
        ],
    }
    ended = await world.play(_REQUEST, script)
    assert ended.one(CorrectionSignal).what_to_do == "Look in docs. If it cannot be done here, end with cannot."
    assert len(ended.asked("ValidationReport")) == 2


async def test_what_is_sent_back_says_why_and_the_judge_sees_the_listing(world: World) -> None:
    """Its own words are no reason; that only notiz.txt is here was shown before the first call."""
    world.file("notiz.txt", "hallo\n")
    passed = {"verdicts": [{"number": 1, "quote": "notiz.txt", "verdict": "pass"}]}
    script = {
        "Plan": plan(subtask("find it", _PERIOD)),
        "ExecutorStep": [
            shell("find . -name 'vert*'; true", final=False),
            gives_up("only notiz.txt"),
            gives_up("none"),
        ],
        "ValidationReport": [lacking("Read notiz.txt.", quote=""), passed],
    }
    ended = await world.play(_REQUEST, script)
    correction = ended.one(CorrectionSignal)
    assert (correction.what_was_wrong, correction.what_to_do) == ("no file", "Read notiz.txt.")
    asked = ended.asked("ValidationReport")[0].user
    assert "notiz.txt (6 B)" in asked.partition("Shown before the first call:")[2]
    assert ended.one(SubTaskOutcome).hopeless


async def test_a_file_that_only_the_plan_names_is_shown(world: World) -> None:
    """The request says "the till"; which file that is R2 has seen, and the worker need not look for it."""
    world.file("kasse.txt", "12 EUR\n")
    script = {"Plan": plan(subtask("read kasse.txt")), "ExecutorStep": shell("cat kasse.txt")}
    ended = await world.play("What is in the till?", script)
    assert "All of kasse.txt:\n12 EUR" in ended.asked("ExecutorStep")[0].user


async def test_the_judge_has_the_persons_words(world: World) -> None:
    """What the planner adds, or misreads, does not look asked for."""
    world.file("kasse.txt", "12 EUR\n")
    passed = {"verdicts": [{"number": 1, "quote": "12 EUR", "verdict": "pass"}]}
    script: Script = {
        "Plan": lambda _: plan(subtask("read kasse.txt, name the method", "it is told")),
        "ExecutorStep": lambda _: shell("cat kasse.txt"),
        "ValidationReport": lambda _: passed,
    }
    ended = await world.play("What is in the till?", script)
    asked = ended.asked("ValidationReport")[0].user
    assert "Request:\nWhat is in the till?\n" in asked and "Planned as: read kasse.txt, name the method\n" in asked
