"""What a request names and is small is read before the first step: an answer may rest on it at once."""

from __future__ import annotations

from scenario import World, judged, matches, plan, says, shell, subtask, write

NOTES = "Monday: buy paint.\nDentist: Thursday 14 May, 10:40.\nReturn the books.\n"
ASKED = "When is the dentist appointment according to notes.txt?"
ANSWER = "The dentist appointment is on Thursday 14 May at 10:40."


async def test_a_question_about_a_small_file_takes_one_step(world: World) -> None:
    """Planned, answered from what was read, judged: three calls; the text stands in the step's prompt once."""
    world.file("notes.txt", NOTES)
    script = {
        "Plan": plan(subtask(ASKED, "the day and the time are given")),
        "ExecutorStep": says(ANSWER, 1),
        "ValidationReport": judged(("pass", "Dentist: Thursday 14 May, 10:40.")),
    }
    ended = await world.play(ASKED, script)
    assert (ended.directive, ended.result.output) == ("accept", ANSWER)
    assert [asked.contract for asked in ended.requests] == ["Plan", "ExecutorStep", "ValidationReport"]
    assert [(call.tool, call.input) for call in ended.calls] == [("read_file", "notes.txt")]
    [step] = ended.asked("ExecutorStep")
    assert step.user.count("Dentist: Thursday") == 1
    assert "[1] read_file: notes.txt\nok\nMonday" in step.user


async def test_of_several_subtasks_each_is_shown_the_files(world: World) -> None:
    """Nobody reads all of them for each part; a later part is shown what an earlier one made of them."""
    world.file("notes.txt", NOTES)
    script = {
        "Plan": plan(
            subtask("replace notes.txt by its number of lines", sequence=1),
            subtask("say what notes.txt holds now", sequence=2),
            criteria=[matches("3", "it holds the number")],
        ),
        "ExecutorStep": [write("notes.txt", "3 lines\n"), shell("cat notes.txt")],
    }
    ended = await world.play("Replace notes.txt by its number of lines and say what it holds now", script)
    first, second = (asked.user for asked in ended.asked("ExecutorStep"))
    assert "All of notes.txt:\nMonday" in first and "All of notes.txt:\n3 lines" in second
    assert [call.tool for call in ended.calls] == ["write_file", "shell"]


async def test_a_large_file_is_left_to_the_steps(world: World) -> None:
    """Of a long one the first lines are listed; how much of it is needed the model knows best."""
    world.file("long.txt", "a line of some length\n" * 500)
    script = {"Plan": plan(subtask("count the lines of long.txt")), "ExecutorStep": shell("wc -l < long.txt")}
    ended = await world.play("How many lines has long.txt?", script)
    assert [call.tool for call in ended.calls] == ["shell"]


async def test_reading_can_be_switched_off(world: World) -> None:
    """Without it the step is shown the file, and reads it if it needs it."""
    world.file("notes.txt", NOTES)
    config = world.config(control={"without": ["reading"]})
    script = {"Plan": plan(subtask(ASKED)), "ExecutorStep": shell("grep Dentist notes.txt")}
    ended = await world.play(ASKED, script, config=config)
    assert [call.tool for call in ended.calls] == ["shell"]
    assert "All of notes.txt:\nMonday" in ended.asked("ExecutorStep")[0].user
