"""`--verify` with a capable model: what holds is told, and what the ways give."""

from __future__ import annotations

from dataclasses import replace

from scenario import World, judged, matches, plan, python, says, shell, subtask

from artoo.contracts.criteria import TWO_WAYS_AGREE
from artoo.contracts.findings import Found, LeftOpen, PartChecked, Unconfirmed
from artoo.words.result import result_words

SUM = "What is the sum of mar.txt?"


async def test_another_way_does_not_take_a_check_away(world: World) -> None:
    """The criterion that a check decided holds; that the ways differ is said beside it."""
    world.file("mar.txt", "500\n10\n6\n")
    script = {
        "Plan": plan(subtask("add up", tool="shell"), criteria=[matches("516")]),
        "ExecutorStep": [
            shell("awk '{s += $1} END {print s}' mar.txt", final=False),
            says("The sum of mar.txt is 516.", 1),
            python("print(7)"),
        ],
    }
    ended = await world.play(SUM, script, options=replace(world.options(), verify=True))
    assert ended.result.output == "The sum of mar.txt is 516." and ended.directive == "success"
    part, open_ = ended.result.facts[:2]
    assert isinstance(part, Unconfirmed) and part.confirmed
    assert isinstance(open_, LeftOpen) and open_.found is not None and open_.found.found is Found.WAYS_DIFFER
    told = [result_words("en").fact(fact) for fact in (part, open_)]
    assert (
        told[0].startswith("Verified in part: ")
        and "7" in told[1]
        and "another way gives another answer" in told[1]
    )


async def test_what_a_check_leaves_is_the_judges_though_ways_differ(world: World) -> None:
    """The judge still reads the answer of a capable model; nothing but that the ways agree is open."""
    world.file("mar.txt", "500\n10\n6\n")
    script = {
        "Plan": plan(subtask("add up", tool="shell"), criteria=["It is the sum."]),
        "ExecutorStep": [
            shell("awk '{s += $1} END {print s}' mar.txt", final=False),
            says("The sum of mar.txt is 516.", 1),
            python("print(7)"),
        ],
        "ValidationReport": judged(("pass", "516")),
    }
    ended = await world.play(SUM, script, options=replace(world.options(), verify=True))
    assert ended.contracts[-1] == "ValidationReport" and ended.result.open == (TWO_WAYS_AGREE,)
    part = ended.result.facts[0]
    assert isinstance(part, Unconfirmed) and part.confirmed == ("It is the sum.",)


async def test_what_a_check_decided_is_told_beside_a_judges_word(world: World) -> None:
    """The whole is as sure as its weakest criterion; that the person's own check holds was told nowhere."""
    world.file("mar.txt", "500\n10\n6\n")
    script = {
        "Plan": plan(subtask("add up", tool="shell"), criteria=[matches("516"), "It is the sum."]),
        "ExecutorStep": [
            shell("awk '{s += $1} END {print s}' mar.txt", final=False),
            says("The sum of mar.txt is 516.", 1),
        ],
        "ValidationReport": judged(("pass", "516")),
    }
    ended = await world.play(SUM, script)
    (told,) = (fact for fact in ended.result.facts if isinstance(fact, PartChecked))
    assert ended.result.assurance == "judged" and told.criteria == ("output_matches 516",)
    assert result_words("en").fact(told).startswith("Checked in part: ")
