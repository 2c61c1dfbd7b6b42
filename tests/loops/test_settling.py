"""The end of whole tasks: what they changed is settled once, or waits, and another process settles it."""

from __future__ import annotations

import pytest
from scenario import Script, World, matches, plan, reply, shell, subtask

from artoo.contracts.confirmation import Choice, ConfirmationRequest
from artoo.contracts.findings import HeldWith
from artoo.contracts.request import Turn
from artoo.contracts.settling import ChangeClass, Ending, Settled
from artoo.contracts.solution import FinalResult
from artoo.runtime.changes.find_pending import find_pending
from artoo.runtime.replay.replay import replay
from artoo.tasklog.layout import tasks_directory
from artoo.tasklog.reader import TaskLogReader
from artoo.workspace.commit import undo
from overlay_here import overlay_backend


@pytest.fixture(autouse=True)
async def _views(world: World) -> None:
    await overlay_backend(world.home)


def doing(command: str) -> Script:
    """One subtask, one command that says done."""
    return {
        "Plan": plan(subtask("do it", matches("done"), tool="shell"), criteria=[matches("done")]),
        "ExecutorStep": shell(f"{command} && echo done"),
    }


EDIT = doing("echo edited > a.txt && echo new > b.txt && rm c.txt")


async def test_what_waits_is_applied_by_another_process(world: World) -> None:
    """The task is done, its changes are pending; later they take effect whole, and undo takes them back."""
    old, gone = world.file("a.txt", "one\n"), world.file("c.txt", "three\n")
    ended = await world.play("Do it.", EDIT)
    assert (ended.directive, ended.result.withheld) == ("accept", ())
    changes = ended.result.changes
    assert (changes.state, changes.reason) == ("pending", "")
    assert {each.change_class for each in changes.counts} == set(ChangeClass) & {
        ChangeClass.DELETION,
        ChangeClass.EDIT,
        ChangeClass.SILENT,
    }
    assert old.read_text() == "one\n" and gone.exists() and not (world.project / "b.txt").exists()
    waiting = find_pending(world.config(), ended.result.task_id)
    assert waiting.request == "Do it."
    assert (await waiting.apply()).state == "applied"
    assert old.read_text() == "edited\n" and not gone.exists() and (world.project / "b.txt").exists()
    assert undo(world.home, ended.result.task_id).refused == ()
    assert old.read_text() == "one\n" and gone.exists() and not (world.project / "b.txt").exists()


async def test_the_stream_tells_the_ending_and_the_replay_is_the_same(world: World) -> None:
    """R7 says Ending, the gate Settled, then the result; a replay has the gate's word from the log."""
    world.file("a.txt", "one\n")
    world.file("c.txt", "three\n")
    ended = await world.play("Do it.", EDIT)
    kinds = [each.kind for each in ended.envelopes if each.kind in ("Ending", "Settled", "FinalResult")]
    assert kinds == ["Ending", "Settled", "FinalResult"]
    assert ended.one(Ending).directive == "accept"
    assert ended.one(FinalResult).changes == ended.one(Settled)
    (directory,) = tasks_directory(world.home).iterdir()
    assert (await replay(TaskLogReader(directory))).difference is None


async def test_a_person_chooses_a_part(world: World) -> None:
    """It is applied with the person's answer, the rest waits."""
    old, gone = world.file("a.txt", "one\n"), world.file("c.txt", "three\n")

    async def some(request: ConfirmationRequest) -> Choice:
        assert request.review is not None
        assert next(one.path for one in request.review.changes) == str(gone)
        return Choice(paths=(str(old),))

    ended = await world.play("Do it.", EDIT, confirm=some)
    assert (ended.result.changes.state, ended.result.changes.applied) == ("partly", (str(old),))
    assert HeldWith(changes="partly") in ended.result.facts, "its checks held with what is still pending"
    assert old.read_text() == "edited\n" and gone.exists()
    assert (await find_pending(world.config(), ended.result.task_id).apply()).state == "applied"
    assert not gone.exists()


async def test_a_later_turn_knows_what_still_waits(world: World) -> None:
    """R1 and R2 are told what is prepared and who can apply it, so that it can be said; applied, it is past."""
    world.file("a.txt", "one\n")
    first = await world.play("Do it.", doing("echo edited > a.txt && mkdir d && echo new > d/b.txt"))
    said = "word " * 100
    history = [Turn(input="Do it.", summary=said, task_id=first.result.task_id)]
    task = first.result.task_id
    script: Script = {
        "TaskSpec": {"intent": "Apply the change of a.txt.", "corrects": False},
        "Plan": reply(f"Task {task} waits for you, to have a.txt and d/b.txt changed."),
    }
    second = await world.play("Yes, apply it.", script, history=history)
    assert (second.directive, second.result.output.count(str(task))) == ("success", 1), second.told
    for contract in ("TaskSpec", "Plan"):
        (asked,) = second.asked(contract)
        assert (
            "not in the files yet: a.txt, d/b.txt. It is not to be done again" in asked.user
            and f"only they can apply or discard task {task}" in asked.user
            and "artoo apply" not in asked.user
        )
    assert "word…\n" in second.asked("TaskSpec")[0].user and said not in second.asked("TaskSpec")[0].user
    assert (await find_pending(world.config(), first.result.task_id).apply()).state == "applied"
    third = await world.play("Thanks.", {**script, "Plan": reply("Good.")}, history=history)
    assert not any("not in the files yet" in asked.user for asked in third.requests)
    (told,) = third.asked("Plan")
    assert f"Only the person can put that back as it was, in a terminal: artoo undo {task}" in told.user
    assert "In the files now: a.txt, d/b.txt." in told.user and said.strip() in told.user
