"""Where a workspace lies on disk, and who may use it."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path

import pytest
from task_world import World

from artoo.contracts.errors import SandboxError
from artoo.sandbox.remove_tree import remove_tree
from artoo.workspace.changes.base import append_lines, read_base
from artoo.workspace.copies import copy_workspace
from artoo.workspace.directory import OtherFormat, WorkspaceDirectory, WorkspaceInUse, Workspaces


def made(world: World, task_id: str = "t") -> WorkspaceDirectory:
    directory = world.directory(task_id)
    directory.make(world.backend.name, world.roots, (world.home,))
    return directory


@pytest.mark.parametrize("number", [0, 99])
def test_a_workspace_of_another_version_is_only_discarded(number: int, world: World) -> None:
    """It is listed apart, and nothing reads it."""
    directory = made(world)
    record = directory.base / "workspace.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "format": number, "more": 1}))
    workspaces = Workspaces(world.artoo_home)
    assert workspaces.listed() == ()
    (outdated,) = workspaces.outdated()
    with pytest.raises(OtherFormat, match="artoo discard t"):
        workspaces.require_readable("t")
    outdated.discard()
    assert not directory.base.exists()


def test_a_damaged_record_is_an_error_that_names_the_file(world: World) -> None:
    """Nothing is deleted on its account."""
    directory = made(world)
    (directory.base / "workspace.json").write_text("{")
    with pytest.raises(SandboxError, match=r"workspace\.json cannot be read"):
        directory.record()
    assert directory.base.exists()


def test_one_process_at_a_time_holds_a_workspace(world: World) -> None:
    """Who waits for a workspace that is deleted meanwhile gets a lock of the next one, never of the deleted."""
    directory = world.directory()
    with directory.locked():
        with pytest.raises(WorkspaceInUse):
            directory.lock()
        got: list[int] = []
        thread = threading.Thread(target=lambda: got.append(directory.lock(10)))
        thread.start()
        directory.make(world.backend.name, world.roots, (world.home,))
        directory.remove()
    thread.join()
    assert os.fstat(got[0]).st_ino == (directory.base / "lock").stat().st_ino
    os.close(got[0])


def test_a_tree_is_deleted_however_a_command_left_it(world: World, tmp_path: Path) -> None:
    """Deeper than a path may be long, and closed to its owner."""
    place = tmp_path / "tree"
    place.mkdir()
    here = os.open(place, os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("deeper", dir_fd=here)
        inner = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    (place / "closed").mkdir()
    (place / "closed" / "f").write_text("x")
    (place / "closed").chmod(0)
    remove_tree(place)
    assert not place.exists()


async def test_a_full_disk_leaves_nothing_half_made(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says so, and the next command may succeed."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(WorkspaceDirectory, "write_record", full)
        async with world.task() as task:
            with pytest.raises(SandboxError, match="No space left"):
                await task.bash("true")
        assert not world.directory().base.exists()
    async with world.task() as task:
        assert await task.says("echo ok") == "ok\n"


async def test_a_project_that_cannot_be_read_is_an_error(world: World) -> None:
    """Nothing is made for it."""
    world.project.rmdir()
    async with world.task() as task:
        with pytest.raises(SandboxError, match="cannot be read"):
            await task.bash("true")
    assert not world.directory().base.exists()


async def test_a_workspace_of_the_other_kind_is_not_continued(world: World) -> None:
    """A machine without overlays cannot work on one; settling it is still possible."""
    world.directory().make("landlock", world.roots, (world.project,))
    async with world.task() as task:
        with pytest.raises(SandboxError, match="is a copy, and this machine's sandbox"):
            await task.bash("true")
    assert world.directory().exists


def test_a_base_that_a_crash_cut_is_read_up_to_there(tmp_path: Path) -> None:
    """The next line replaces the cut one; damage in the middle is an error."""
    file = tmp_path / "base.jsonl"
    append_lines(file, [b'{"looked_ns": 1, "absent": ["/a"]}'])
    with file.open("ab") as whole:
        whole.write(b'{"path": "/x", "was"')
    assert read_base(file) == {}
    append_lines(file, [b'{"looked_ns": 2, "absent": []}'])
    assert file.read_bytes().count(b"\n") == 2
    file.write_bytes(b"damage\n" + file.read_bytes())
    with pytest.raises(SandboxError, match="line 1 is damaged"):
        read_base(file)


def test_a_copied_workspace_has_the_same_changes(either: World) -> None:
    """Another agent may continue from it under another task."""
    for name in ("a", "b", "d/x"):
        (either.project / name).parent.mkdir(exist_ok=True)
        (either.project / name).write_text(name)
    found = either.does(
        "echo x >> a; rm b; rm -r d; mkdir d; echo new > d/new; ln -s a link; mkdir closed; chmod 555 closed"
    )
    copy_workspace(either.directory(), either.directory("other"))
    other = either.change_set("other")
    assert [(one.path, one.change_class) for one in other.classes] == [
        (one.path, one.change_class) for one in found.classes
    ]
    assert either.directory("other").record().task_id == "other"
