"""A capable model that says a refused figure again: it may be right, in words that code does not read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from scenario import World, plan, says, shell, subtask

from artoo.contracts.execution import SubTaskOutcome
from artoo.contracts.findings import LeftOpen, Unconfirmed
from artoo.words.result import result_words


async def test_what_its_author_says_again_is_a_judges_to_decide(world: World) -> None:
    """Half past three may stand there in words, which code does not read; what was named is shown to the judge."""
    world.file("a.txt", "halb vier\n")
    passed = {"verdicts": [{"number": number, "quote": "halb vier", "verdict": "pass"} for number in (1, 2)]}
    script = {
        "Plan": plan(subtask("translate", "it says when")),
        "ExecutorStep": [shell("cat a.txt", final=False), says("3:30", 1), says("at 3:30", 1)],
        "ValidationReport": passed,
    }
    ended = await world.play("Translate a.txt.", script)
    assert (ended.directive, ended.result.output, ended.result.assurance) == ("success", "at 3:30", "unverified")
    assert [fact.found.said for fact in ended.result.facts if isinstance(fact, LeftOpen) and fact.found] == ["3:30"]
    assert "in no change and not in the request: 3:30" in "\n".join(
        map(result_words("en").fact, ended.result.facts)
    )
    (asked,) = ended.asked("ValidationReport")
    assert (
        "Code found against the claim: found in no output, in no change and not in the request: 3:30." in asked.user
    )
    assert [fact.confirmed for fact in ended.result.facts if isinstance(fact, Unconfirmed)] == [()]
    assert "Today: " in asked.user


@pytest.mark.parametrize("verdict", ["fail", "pass"])
async def test_the_fact_stands_where_the_judge_does_not_pass_it(world: World, verdict: str) -> None:
    """A pass without a quote is none."""
    world.file("a.txt", "halb vier\n")
    said = {"verdicts": [{"number": 1, "verdict": verdict, "reason": "half past three"}]}
    script = {
        "Plan": [plan(subtask("translate")), {"question": "Which one?"}],
        "ExecutorStep": [shell("cat a.txt", final=False), says("7:30", 1), says("7:30", 1)],
        "ValidationReport": [said] * (2 if verdict == "pass" else 1),  # asked once more for the quote
    }
    ended = await world.play("Translate a.txt.", script, config=world.config(control={"max_replans": 1}))
    outcome = ended.one(SubTaskOutcome)
    assert outcome.status == "failed"
    assert [each.reason.said for each in outcome.criteria_verdicts if each.reason] == ["7:30"]


async def test_the_day_that_a_prompt_shows_may_be_reckoned_with(world: World) -> None:
    """An age is this year less another."""
    world.file("a.txt", "born 1979-01-01\n")
    year = datetime.now(UTC).year
    script = {
        "Plan": plan(subtask("how old")),
        "ExecutorStep": [shell("cat a.txt", final=False), says(f"{year} - 1979 = {year - 1979}", 1)],
    }
    ended = await world.play("How old is she?", script)
    assert (ended.directive, len(ended.asked("ExecutorStep"))) == ("accept", 2)


async def test_what_the_prompt_shows_of_a_file_may_be_said(world: World) -> None:
    """It stands there, though no call has read it: 79 is a figure of the file."""
    world.file("prices.txt", "tea 79,00\ncoffee 12,50\n")
    answer = says("Tea costs 79.00, coffee 12.50.")
    ended = await world.play(
        "Tell the prices of prices.txt.", {"Plan": plan(subtask("tell")), "ExecutorStep": answer}
    )
    assert (ended.result.output, len(ended.asked("ExecutorStep"))) == ("Tea costs 79.00, coffee 12.50.", 1)


async def test_what_stands_in_quotation_marks_may_be_said_without(world: World) -> None:
    """A worker whose own words were taken for a quotation is told what mends it."""
    world.file("req.txt", "Status 404\n")
    script = {
        "Plan": plan(subtask("explain")),
        "ExecutorStep": [
            shell("cat req.txt", final=False),
            says('404 means "not found".', 1),
            says("404 means not found.", 1),
        ],
    }
    ended = await world.play("Explain req.txt.", script)
    assert (ended.directive, len(ended.asked("ExecutorStep"))) == ("accept", 3)
    assert "Words of your own stand without quotation marks." in ended.asked("ExecutorStep")[-1].user
