"""Several parts, one answer: who writes it judges by calls and changes, never by what parts say of themselves."""

from __future__ import annotations

import pytest
from scenario import Each, Json, Script, World, merged, plan, read, says, shell, subtask, write

from artoo.contracts.execution import CorrectionSignal
from artoo.words.result import result_words

RENAMED = "a.txt is renamed to b.txt and c.txt holds hello."
RENAME, HELLO = "Rename a.txt to b.txt.", "Write hello into c.txt."
LIE = "a.txt was renamed to b.txt."


def both(*verdicts: tuple[str, str], criteria: list[Json | str] | None = None) -> Script:
    """One part says what it never did, the other one does what it says."""
    return {
        "Plan": plan(subtask(RENAME), subtask(HELLO), criteria=criteria or [RENAMED]),
        "ExecutorStep": Each.of(
            Rename=says(LIE), hello=[write("c.txt", "hello\n", final=False), says("c.txt holds hello.", 1)]
        ),
        "MergeReport": merged("a.txt was renamed to b.txt, and c.txt holds hello.", *verdicts),
    }


@pytest.mark.parametrize("quote", [LIE, RENAME, "hello", "no call shows anything"])
async def test_a_part_that_rests_on_nothing_lets_nothing_be_judged(world: World, quote: str) -> None:
    """Whatever the writer quotes: what stands below no call is nobody's to confirm, and the part is named."""
    world.file("a.txt", "one\n")
    ended = await world.play("Rename a.txt to b.txt, and write hello into c.txt", both(("pass", quote)))
    assert (ended.directive, ended.result.assurance) == ("success", "unverified")
    assert set(ended.result.open) == {RENAME, RENAMED}
    told = [result_words("en").fact(fact) for fact in ended.result.facts]
    assert told[0] == "Unverified: nothing has confirmed this answer."
    assert (
        f"Not verified: {RENAME} (no tool has shown it; it comes from the model's knowledge or its prompt)" in told
    )
    assert ended.contracts.count("MergeReport") == 1 and len(ended.contracts) == 5


async def test_a_writer_sees_the_calls_and_quotes_from_them_alone(world: World) -> None:
    """What calls put out and what was changed grounds a verdict; the results' own words do not. Nothing is shown
    twice: not the same call, not an output that is the result.
    """
    table = "".join(f"person {number},{number}\n" for number in range(120))
    world.file("points.csv", table)

    def script(quote: str) -> Script:
        return {
            "Plan": plan(subtask("show all"), subtask("say who leads"), criteria=["it names who leads"]),
            "ExecutorStep": Each.of(
                show=shell("cat points.csv"), leads=[shell("cat points.csv", final=False), says("Ben, clearly.", 1)]
            ),
            "MergeReport": merged("Person 19 leads.", ("pass", quote)),
        }

    ended = await world.play("Who leads?", script("person 19,19"))
    assert (ended.directive, ended.result.assurance) == ("accept", "judged")
    (asked,) = ended.asked("MergeReport")
    assert asked.user.partition("call 1.1: ")[2].count("person 7,7") == 1
    assert "what call 1.1 put out" in asked.user and "call 2.1: as call 1.1" in asked.user
    ended = await world.play("Who leads?", script("Ben, clearly."))
    assert (ended.directive, ended.result.assurance) == ("success", "unverified")


async def test_a_writer_is_shown_what_was_changed(world: World) -> None:
    """A long text that a call wrote stands in the difference alone."""
    text = "".join(f"line {number}\n" for number in range(150))
    script = {
        "Plan": plan(subtask("write it"), subtask("say it"), criteria=["it is written"]),
        "ExecutorStep": Each.of(write=write("c.txt", text), say=shell("date +%Y")),
        "MergeReport": merged("It is written.", ("pass", "+line 149")),
    }
    ended = await world.play("Write and say it", script)
    assert (ended.directive, ended.result.assurance) == ("accept", "judged")
    assert ended.asked("MergeReport")[0].user.count("line 77\n") == 1


TELEPHONE = "Alexander Graham Bell, with a patent of 1876."


async def test_what_a_part_knows_is_not_refused_for_a_file_of_another_part(world: World) -> None:
    """Only the part's own words say what it is about; the whole request stands beside them."""
    world.file("club.txt", "The club has 214 members.\n")
    script = {
        "Plan": plan(
            subtask("Sum up club.txt in a sentence."), subtask("Say who invented the telephone."), criteria=["both"]
        ),
        "ExecutorStep": Each.of(
            club=[read("club.txt", final=False), says("The club has 214 members.", 1)], telephone=says(TELEPHONE)
        ),
        "MergeReport": merged(f"The club has 214 members. {TELEPHONE}", ("pass", "214 members")),
    }
    ended = await world.play("Sum up club.txt, and say who invented the telephone", script)
    assert (ended.directive, ended.result.assurance, len(ended.contracts)) == ("success", "unverified", 5)
    assert "Say who invented the telephone." in ended.result.open


@pytest.mark.parametrize("told", ["v is 3141 there (next to build=2718).", "v is 1234 there, as in 1999."])
async def test_a_later_part_is_held_to_what_it_was_shown(world: World, told: str) -> None:
    """Its executor sees the files as an earlier part left them, and so do those who judge it: what stood there
    before is a fact for nobody. All that stands nowhere is named at once."""
    world.file("a.cfg", "v=1234\n")
    now = "v=3141\nbuild=2718\n"
    right = "3141" in told
    script: Script = {
        "Plan": plan(
            subtask("Renew a.cfg."), subtask("Say what v is in a.cfg.", sequence=2), criteria=["it tells v"]
        ),
        "ExecutorStep": [write("a.cfg", now), *([says(told)] if right else [says(told), shell("cat a.cfg")])],
        "MergeReport": merged("v is 3141.", ("pass", "build=2718")),
    }
    ended = await world.play("Renew a.cfg and say what v is", script)
    wrong = [correction.what_was_wrong for correction in ended.all(CorrectionSignal)]
    assert wrong == ([] if right else ["it states facts about local files that no call has read: 1234; 1999"])
    assert (ended.directive, ended.result.open) == (
        ("success", ("Say what v is in a.cfg.", "it tells v")) if right else ("accept", ())
    )
    evidence = ended.asked("MergeReport")[0].user.partition("Evidence:\n")[2]
    assert "v=1234" in evidence.partition("Shown to [1] before the first call:\n ")[2]
    assert "build=2718" in evidence.partition("Shown to [2] before the first call:\n ")[2]


async def test_a_writer_sees_what_parts_were_shown_and_did_not_read(world: World) -> None:
    """A translation is made of what stands in the prompt: only beside the original can anybody say that it
    is right."""
    world.file("info.txt", "Am Dienstag geschlossen.\n")
    script = {
        "Plan": plan(
            subtask("Translate info.txt into English, as en.txt."),
            subtask("Translate info.txt into Polish, as pl.txt."),
            criteria=["both say what info.txt says"],
        ),
        "ExecutorStep": Each.of(
            English=write("en.txt", "Closed on Tuesday.\n"), Polish=write("pl.txt", "Zamkniete w srode.\n")
        ),
        "MergeReport": merged("Both are made.", ("pass", "Am Dienstag geschlossen.")),
    }
    ended = await world.play("Translate info.txt into English and Polish", script)
    assert (ended.directive, ended.result.assurance) == ("accept", "judged")
    evidence = ended.asked("MergeReport")[0].user.partition("Evidence:\n")[2]
    assert evidence.startswith("Shown to [1], [2] before the first call:\n ") and evidence.count("Dienstag") == 1
