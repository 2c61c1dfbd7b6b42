"""Read-only directories, other users' files and locked contents, without root's rights."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from commit_world import TASK, CommitWorld, effects_between, plain_world, tree, write
from victim import failing, killed

from artoo.contracts.errors import SandboxError
from artoo.workspace.commit import records_of, recover, undo
from plain_user import act_as_plain_user

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes another user's files")
MOST = 2_000


def fill(project: Path) -> None:
    """Make a tree with directories that are read-only."""
    for name in ("closing/c", "opening/d", "kept/g", "gone/e", "gone/deep/f"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(name)
        os.utime(project / name, ns=(1, 1))
    (project / "gone/locked").write_text("locked")
    os.utime(project / "gone/locked", ns=(1, 1))
    (project / "gone/locked").chmod(0o200)
    for name, mode in (("opening", 0o500), ("kept", 0o555), ("gone/deep", 0o555), ("gone", 0o555)):
        (project / name).chmod(mode)


def change(project: Path) -> None:
    """Change what is in them, and their modes; remove them; make a read-only tree; open one and close it again."""
    for name in ("opening", "kept", "gone", "gone/deep"):
        (project / name).chmod(0o700)
    shutil.rmtree(project / "gone")
    for name in ("closing/c", "opening/d", "kept/g", "kept/h", "made/inner/b"):
        write(project / name, f"new {name}")
        os.utime(project / name, ns=(2, 2))
    for name, mode in (("made/inner", 0o500), ("made", 0o555), ("closing", 0o500), ("kept", 0o555)):
        (project / name).chmod(mode)


def made(world: CommitWorld) -> None:
    shutil.rmtree(world.project, ignore_errors=True)
    for directory, _, _ in os.walk(world.base):
        os.chmod(directory, 0o700)
    shutil.rmtree(world.base, ignore_errors=True)
    world.begin(fill)


def test_read_only_directories_are_changed_and_have_their_modes_again() -> None:
    """Also after an undo; a mode that the task gave stays."""
    with plain_world() as world:

        def act() -> None:
            made(world)
            before = world.tree(times=True)
            assert world.apply(change).applied
            assert world.tree(times=True) == tree(world.made, times=True)
            assert undo(world.artoo_home, TASK).refused == ()
            assert world.tree(times=True) == before
            assert world.records() == []

        act_as_plain_user(act)


@pytest.mark.parametrize("stride", [67, pytest.param(1, marks=pytest.mark.torture)])
def test_a_death_leaves_no_directory_open(stride: int) -> None:
    """At any change on disk of an apply or an undo; the next start gives the modes back."""
    with plain_world() as world:

        def act() -> None:
            for fuse in range(1, MOST, stride):
                made(world)
                before = world.tree(times=True)
                effects = world.work(change)
                after = tree(world.made, times=True)
                ended = killed(partial(world.apply_effects, effects), fuse)
                recover(world.artoo_home)
                done = any(record.done for record in records_of(world.undo_home, TASK))
                assert world.tree(times=True) == (after if done else before), f"at {fuse}"
                if not done:
                    assert world.apply_effects(effects).applied
                ended &= killed(lambda: undo(world.artoo_home, TASK), fuse)
                recover(world.artoo_home)
                if records_of(world.undo_home, TASK):
                    undo(world.artoo_home, TASK)
                assert world.tree(times=True) == before, f"undo at {fuse}"
                if ended:
                    return

        act_as_plain_user(act)


@pytest.mark.parametrize("stride", [67, pytest.param(1, marks=pytest.mark.torture)])
def test_a_failure_leaves_no_directory_open(stride: int) -> None:
    """A full disk in the middle: modes are as before."""
    with plain_world() as world:

        def act() -> None:
            for fuse in range(1, MOST, stride):
                made(world)
                before = world.tree(times=True)
                effects = world.work(change)
                applied = False
                with failing(fuse) as failed, suppress(SandboxError):
                    applied = world.apply_effects(effects).applied
                recover(world.artoo_home)
                assert world.tree(times=True) == (tree(world.made, times=True) if applied else before), f"at {fuse}"
                if not failed:
                    return

        act_as_plain_user(act)


@needs_root
def test_another_users_file_is_that_very_file_again_after_an_undo() -> None:
    """In a directory of the user's the kernel allows to replace it, and it is only moved."""
    with plain_world() as world:
        (world.project / "theirs").write_text("theirs")
        (world.project / "theirs").chmod(0o600)

        def act() -> None:
            before = (world.project / "theirs").stat()
            world.made.mkdir()
            effects = [one for one in effects_between(world.project, world.made) if one.after is None]
            assert world.apply_effects(effects).applied
            assert not (world.project / "theirs").exists()
            assert undo(world.artoo_home, TASK).refused == ()
            after = (world.project / "theirs").stat()
            assert (after.st_ino, after.st_uid, after.st_mode) == (before.st_ino, 0, before.st_mode)

        act_as_plain_user(act)


def test_a_directory_that_cannot_be_written_is_an_error() -> None:
    """Another user's directory, or a read-only file system: nothing is changed."""
    with plain_world() as world:
        (world.project / "d").mkdir()
        (world.project / "a").write_text("a")
        if os.geteuid() == 0:
            os.chown(world.project / "a", 12_345, 12_345)

        def act() -> None:
            effects = world.work(lambda p: [write(p / name, "new") for name in ("a", "d/b")])
            with pytest.raises(SandboxError, match="everything is as before"):
                world.apply_effects(effects)
            assert (world.project / "a").read_text() == "a"
            assert not (world.project / "d" / "b").exists()
            assert world.records() == []

        if os.geteuid() == 0:
            act_as_plain_user(act)
