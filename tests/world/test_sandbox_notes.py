"""What journals tell the next process of a task: which calls took effect, and what is the task's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sandbox_world import World

from artoo.contracts.changes import Trait
from artoo.contracts.errors import ConfigurationError, SandboxError
from artoo.ports.sandbox import ActNote, Sandbox, TaskLedger
from artoo.world.journal import Record, records
from artoo.world.recover import recover
from artoo.world.remembered import remembered
from artoo.world.undo import Keep, prune, undo

TASK = "task-1"


async def act(world: World, sandbox: Sandbox, script: str, number: int) -> ActNote:
    """Runs a script and applies all of it under a note."""
    run = await sandbox.run(world.bash(script))
    note = ActNote(f"s/{number}", f"digest {number}", json.dumps({"output": script}))
    async with run.staged:
        assert (await run.staged.apply(digest=run.staged.digest, note=note)).applied
    return note


def journal_of(world: World, number: int = 0) -> Path:
    return list(records(world.artoo_home / "undo"))[number].place / "journal.json"


async def test_the_next_process_knows_what_this_one_did(world: World, sandbox: Sandbox) -> None:
    """Notes of all acts, and exactly the ledger that this process has, files gone and users' files included."""
    (world.project / "users").write_text("old")
    scripts = (
        "mkdir d; echo 1 > d/a; echo 2 > b; ln -s b link",
        "echo 3 >> d/a; rm b; echo new > users",
        "chmod 600 d/a; mkdir e; mv d/a e/a",
        "echo 4 > b",
    )
    notes = [await act(world, sandbox, script, number) for number, script in enumerate(scripts)]
    found = remembered(world.artoo_home, TASK)
    assert found.notes == {note.act: note for note in notes}
    assert found.ledger == world.ledger
    assert f"{world.project}/e/a" in found.ledger.made
    assert remembered(world.artoo_home, "another").ledger == TaskLedger()


async def test_what_the_user_touched_between_is_not_the_tasks(world: World, sandbox: Sandbox) -> None:
    """A file that was edited between two processes of a task is the user's, in the second as it would be in one."""
    await act(world, sandbox, "echo 1 > a; echo 1 > b", 1)
    (world.project / "a").write_text("mine")
    world.ledger = remembered(world.artoo_home, TASK).ledger
    run = await sandbox.run(world.bash("echo 2 > a; echo 2 > b"))
    async with run.staged:
        assert [change.has(Trait.OWN) for change in run.staged.changes] == [False, True]


async def test_journals_of_the_first_format_are_read(world: World, sandbox: Sandbox) -> None:
    """Without a note and without what was left: undone as before; such files are asked about again."""
    await act(world, sandbox, "echo 1 > a", 1)
    path = journal_of(world)
    old = json.loads(path.read_text()) | {"format": 1}
    del old["note"]
    path.write_text(json.dumps(old))
    path.with_name("done").write_text("")
    assert remembered(world.artoo_home, TASK).notes == {}
    assert remembered(world.artoo_home, TASK).ledger == TaskLedger()
    assert recover(world.artoo_home).finished == ()
    assert undo(world.artoo_home, TASK).restored == (f"{world.project}/a",)


async def test_a_finished_act_is_the_tasks_own(world: World, sandbox: Sandbox) -> None:
    """An act that a crash cut is finished by recovery, and its files are the task's as if nothing had been."""
    await act(world, sandbox, "echo 1 > a", 1)
    journal_of(world).with_name("done").unlink()
    with pytest.raises(SandboxError, match="half done"):
        remembered(world.artoo_home, TASK)
    assert len(recover(world.artoo_home).finished) == 1
    assert remembered(world.artoo_home, TASK).ledger == world.ledger
    assert list(remembered(world.artoo_home, TASK).notes) == ["s/1"]


async def test_an_act_that_never_committed_is_unknown(world: World, sandbox: Sandbox) -> None:
    """A record without a journal took no effect, and is not remembered."""
    await act(world, sandbox, "echo 1 > a", 1)
    Record.begin(world.artoo_home / "undo", TASK, "9-later")
    assert list(remembered(world.artoo_home, TASK).notes) == ["s/1"]


async def test_notes_outlive_their_before_images(world: World, sandbox: Sandbox) -> None:
    """Acts that had to go for room keep their note until they are old; then nothing of the task is left."""
    (world.project / "big").write_bytes(b"x" * 1_000)
    await act(world, sandbox, "echo 1 > big", 1)
    await act(world, sandbox, "echo 1 > small", 2)
    assert prune(world.artoo_home, Keep(total_bytes=10)) == 1
    assert list(remembered(world.artoo_home, TASK).notes) == ["s/1", "s/2"]
    much_later = (world.artoo_home / "undo").stat().st_mtime + 40 * 86_400
    prune(world.artoo_home, Keep(), now=much_later)
    assert [path.name for path in (world.artoo_home / "undo").iterdir()] == ["lock"]


async def test_a_task_that_was_put_back_does_not_go_on(world: World, sandbox: Sandbox) -> None:
    """After `artoo undo` the log of the task is no longer true of the files: resuming is refused."""
    await act(world, sandbox, "echo 1 > a", 1)
    undo(world.artoo_home, TASK)
    with pytest.raises(ConfigurationError, match="put back by `artoo undo`"):
        remembered(world.artoo_home, TASK)


async def test_a_damaged_memory_is_an_error(world: World, sandbox: Sandbox) -> None:
    """Kept notes that cannot be read stop the resuming."""
    await act(world, sandbox, "echo 1 > a", 1)
    (journal_of(world).parent.parent / "pruned").write_text("{")
    with pytest.raises(SandboxError, match="cannot be read"):
        remembered(world.artoo_home, TASK)
