"""Parallel subtasks share the task's workspace: each sees what the others do, and what two changed is told."""

from __future__ import annotations

from dataclasses import replace

from scenario import Each, Script, World, matches, merged, plan, shell, subtask

from artoo import Artoo
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import SubTaskOutcome
from artoo.contracts.findings import ChangedByTwo
from artoo.contracts.plan import Joined


async def test_a_path_that_two_parts_changed_is_told_to_the_user(world: World) -> None:
    """Neither part fails for it: the fact stands next to the answer."""

    steps = Each.of(
        red=shell("echo red > a.txt; cat a.txt"),
        blue=replace(shell("echo blue > a.txt; cat a.txt"), delay=2.0),  # when the other call has ended
    )
    parts = (subtask(f"write the {colour} one", matches(colour)) for colour in ("red", "blue"))
    script: Script = {
        "Plan": plan(*parts, criteria=["both were written"]),
        "ExecutorStep": steps,
        "MergeReport": merged("Both were written.", ("pass", "red")),
    }
    ended = await world.play("Write both.", script)
    assert ended.directive in ("accept", "success")
    joined = ended.all(Joined)[0]
    assert [one.path for one in joined.shared] == [str(world.project / "a.txt")]
    (fact,) = (each for each in ended.result.facts if isinstance(each, ChangedByTwo))
    assert fact.paths == (str(world.project / "a.txt"),)
    assert set(fact.parts) == {"write the red one", "write the blue one"}
    assert (world.project / "a.txt").read_text() == "blue\n"


async def test_a_part_sees_the_files_of_a_part_beside_it(world: World) -> None:
    """One waits for a file that the other makes."""
    steps = Each.of(
        write=shell("echo made > a.txt; cat a.txt"),
        read=shell("while ! test -s a.txt; do sleep 0.05; done; cat a.txt"),
    )
    parts = (subtask(intent, matches("made")) for intent in ("write", "read"))
    ended = await world.play("Do it.", {"Plan": plan(*parts), "ExecutorStep": steps, "MergeReport": merged("made")})
    assert [each.status for each in ended.all(SubTaskOutcome)] == ["matched", "matched"]


async def test_what_a_part_did_before_the_task_stopped_stays_in_the_workspace(world: World) -> None:
    """A part has ended, its sibling has not, and the user leaves: its outcome is told."""
    steps = Each.of(write=shell("echo made > a.txt; echo it is made"), wait=replace(shell("true"), delay=20.0))
    parts = (subtask(intent, matches(r"it is")) for intent in ("write", "wait"))
    script: Script = {"Plan": plan(*parts, criteria=["all of it"]), "ExecutorStep": steps}

    async def leave(artoo: Artoo, envelope: Envelope) -> None:
        if isinstance(envelope.payload, SubTaskOutcome):
            artoo.interrupt()

    ended = await world.play("Do it.", script, during=leave)
    assert ended.result.stopped_by == "interrupted" and not ended.all(Joined)
    assert ended.result.output == "it is made" and ended.result.done == ("write",)
