"""Workspaces that are copies, and workspaces of users without root's rights."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from task_world import World, make_world

from artoo.ports.workspace import Command
from artoo.sandbox.backends.copying import CopyBackend
from artoo.workspace import commit
from artoo.workspace.copies import CopyLimits
from artoo.workspace.workspace import workspaces_in
from plain_user import as_plain_user


@pytest.fixture
def copying(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A home whose project is copied."""
    return make_world(tmp_path_factory.mktemp("copying"), CopyBackend("landlock"))


def test_a_copy_follows_the_user(copying: World) -> None:
    """What the user makes, edits and deletes arrives, where the task has changed nothing."""
    for name in ("edited", "deleted", "d/x", "d/kept", "mine"):
        (copying.project / name).parent.mkdir(exist_ok=True)
        (copying.project / name).write_text("old")

    async def work() -> None:
        async with copying.task() as task:
            await task.says("echo task > mine; echo task > d/kept")
            (copying.project / "edited").write_text("user")
            (copying.project / "deleted").unlink()
            (copying.project / "d" / "x").unlink()
            (copying.project / "new").mkdir()
            (copying.project / "new" / "f").write_text("user")
            (copying.project / "mine").write_text("user")
            assert await task.workspace.refresh() == (str(copying.project / "mine"),)
            shown = await task.says("find . -type f | sort; cat edited new/f mine")
            assert shown == "./d/kept\n./edited\n./mine\n./new/f\nuserusertask\n"

    asyncio.run(work())
    assert [one.path for one in copying.change_set().conflicts] == [str(copying.project / "mine")]
    assert copying.classes() == {"project/d/kept": "edit"}


def test_a_copy_continues_after_a_restart(copying: World) -> None:
    """The manifest says what was copied; the user's changes since then arrive."""
    (copying.project / "a").write_text("a")
    (copying.project / "b").write_text("b")
    copying.does("echo task >> a; rm b")
    (copying.project / "c").write_text("c")

    async def work() -> None:
        async with copying.task() as task:
            assert await task.says("ls; cat a") == "a\nc\natask\n"

    asyncio.run(work())
    assert copying.classes() == {"project/a": "edit", "project/b": "deletion"}


def test_what_is_too_large_for_a_copy_is_reported_and_stays(copying: World) -> None:
    """Nothing that was not copied seems to be deleted, and a note names it."""
    for name in ("a", "b", "deep/er/f", "deep/er/g"):
        (copying.project / name).parent.mkdir(parents=True, exist_ok=True)
        (copying.project / name).write_text(name)

    async def work() -> None:
        workspace = workspaces_in(copying.backend, copying.artoo_home, copy_limits=CopyLimits(paths=4))(
            "t", copying.roots
        )
        ended = await workspace.run(Command(("bash", "-c", "find . | sort; rm -r deep; echo x > new")), 30)
        assert ended.stdout.text == ".\n./a\n./b\n./deep\n./deep/er\n"
        assert f"missing in it: {copying.project}/deep/er/f" in workspace.notes[0]
        await workspace.close()

    asyncio.run(work())
    found = copying.change_set()
    assert [one.path for one in found.effects] == [os.fsencode(copying.project / "new")]
    assert {one.path.rpartition("/")[2] for one in found.conflicts} == {"deep", "er", "f", "g"}


def test_hidden_files_are_never_copied(copying: World) -> None:
    """A project that is the home itself has them."""
    (copying.home / ".ssh").mkdir()
    (copying.home / ".ssh" / "id").write_text("key")
    (copying.home / "visible").write_text("x")
    world = World(copying.home, copying.backend)
    world.__class__.project = property(lambda self: self.home)  # type: ignore[method-assign,assignment]
    try:
        world.does("true")
        copied = {path.name for path in world.directory().copy(0).rglob("*")}
        assert "visible" in copied
        assert not {"id", ".artoo"} & copied
    finally:
        world.__class__.project = property(lambda self: self.home / "project")  # type: ignore[method-assign,assignment]


def test_what_a_user_may_not_read_afterwards_is_settled_and_discarded(either: World) -> None:
    """Whiteouts, opaque directories and closed modes need no rights that a plain user has not."""
    world = either
    for name in ("old", "gone", "d/x"):
        (world.project / name).parent.mkdir(exist_ok=True)
        (world.project / name).write_text(name)
    found = world.does(
        "echo x >> old; rm gone; rm -r d; mkdir d; echo y > d/y; echo n > new; mkdir closed; echo c > closed/c",
        "chmod 000 closed/c closed",
    )
    assert not found.conflicts
    names = {one.path.removeprefix(f"{world.project}/"): one.change_class.value for one in found.classes}
    assert names == {
        "old": "edit",
        "gone": "deletion",
        "d/x": "deletion",
        "d/y": "silent",
        "new": "silent",
        "closed": "silent",
        "closed/c": "silent",
    }
    report = commit.apply(found.effects, (), task_id="t", undo_home=world.artoo_home / "undo")
    assert report.applied, report.conflicts
    assert {one.path.rpartition("/")[2] for one in world.change_set().changes} <= {"c"}  # nobody may look at it
    world.directory().remove()
    assert not world.directory().base.exists()


def test_everything_works_for_a_plain_user() -> None:
    """What depends on rights, by a user who may mount nothing outside of a user namespace."""
    here = Path(__file__)
    only = "in_the_workspace or seen_by_commands or leaves_nothing or user_edits or may_not_read or tree_is_deleted"
    as_plain_user(here, here.with_name("test_living_workspace.py"), here.with_name("test_directory.py"), only=only)


def test_the_list_of_changes_is_fast(world: World) -> None:
    """One changed file among 10,000 in the upper directory; the limit leaves room for a loaded machine."""

    async def work() -> float:
        async with world.task() as task:
            await task.says("mkdir $(seq 100); for i in $(seq 100); do touch $(seq -f $i/%g 100); done")
            mark = await task.workspace.mark()
            await task.workspace.changes_since(mark)
            mark = await task.workspace.mark()
            await task.says("echo y > 5/5")
            began = time.process_time()
            changes = await task.workspace.changes_since(mark)
            assert [one.path for one in changes] == [str(world.project / "5" / "5")]
            return time.process_time() - began

    assert asyncio.run(work()) < 0.2
