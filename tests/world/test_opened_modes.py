"""Modes that are opened for an act are put back, also when the process dies. A plain user's: root needs none."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from apply_victim import burn
from layers import view_of
from plain_world import as_plain_user, plain_world
from sandbox_snapshots import Entry, snapshot
from sandbox_world import World

from artoo.contracts.errors import SandboxError
from artoo.world.closing import opened
from artoo.world.journal import Record
from artoo.world.recover import recover
from artoo.world.undo import undo
from artoo.world.view_place import Views

TASK = "locked"
Tree = dict[str, Entry]
MODES = {"closes": 0o555, "stays": 0o555, "made": 0o555, "shut": 0o000, "shut/in": 0o500, "closes/secret": 0o000}
"""What the task leaves, below the project."""


@pytest.fixture
def open_world() -> Iterator[World]:
    with plain_world() as one:
        yield one


def fill(project: Path) -> None:
    for name in ("closes", "stays", "shut/in", "persons"):
        (project / name).mkdir(parents=True)
        (project / name / "f").write_text(f"old {name}\n")
    (project / "stays/g").write_text("old g\n")
    (project / "closes/secret").write_text("old secret\n")
    (project / "stays").chmod(0o555)


def work(home: Path) -> None:
    project = home / "project"
    (project / "stays").chmod(0o755)
    (project / "made").mkdir()
    for name in ("closes", "stays", "shut/in", "persons", "made"):
        (project / name / "f").write_text(f"new and longer {name}\n")
    (project / "stays/g").write_text("new and longer g\n")
    (project / "closes/secret").write_text("new secret\n")


def open_all(place: Path) -> None:
    """So that it can be removed, or looked at by the tests themselves."""
    for directory, names, _ in os.walk(place):
        for name in names:
            (Path(directory) / name).chmod(0o755)


def reset(world: World) -> None:
    """A fresh project, and a view in which the task has locked what it had changed."""
    for place in (world.project, world.artoo_home):
        if place.exists():
            open_all(place)
            shutil.rmtree(place)
    world.project.mkdir()
    fill(world.project)
    upper = view_of(world, work, TASK).upper("task", 0) / "project"
    for name, mode in reversed(MODES.items()):
        (upper / name).chmod(mode)


def seen(world: World) -> Tree:
    """The project; what nobody may list is opened for the look."""
    shut = world.project / "shut"
    mode = shut.stat().st_mode & 0o777
    shut.chmod(0o755)
    found = snapshot(world.project)
    shut.chmod(mode)
    return found | {"the mode of shut": (mode,)}


def apply(world: World) -> None:
    with opened(Views(world.artoo_home).place(TASK), world.artoo_home) as view:
        found = view.difference()
        assert view.apply(found, digest=found.digest).whole


def look(world: World) -> list[tuple[str, int]]:
    with opened(Views(world.artoo_home).place(TASK), world.artoo_home) as view:
        return [(one.shown, one.after.mode) for one in view.difference().effects if one.after is not None]


def killed(act: Callable[[], object], fuse: int) -> bool:
    """Whether it died at its Nth change on disk."""
    child = os.fork()
    if child == 0:
        burn(fuse)
        act()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return status != 0


def nothing_is_noted(world: World) -> None:
    assert not list(world.artoo_home.rglob("opened/*"))
    assert not [one for one in world.artoo_home.rglob("opened") if one.is_file()]


@pytest.mark.parametrize("stride", [19, pytest.param(1, marks=pytest.mark.torture)])
def test_a_death_while_applying_leaves_no_mode_open(open_world: World, stride: int) -> None:
    """What is applied afterwards has the modes that the task gave, and undo gives back what they were."""
    world = open_world

    def act() -> None:
        reset(world)
        before = seen(world)
        apply(world)
        after = seen(world)
        assert after["closes"] != before["closes"]
        fuse, died = 1, True
        while died:
            reset(world)
            died = killed(lambda: apply(world), fuse)
            recover(world.artoo_home)
            if Views(world.artoo_home).place(TASK).exists:
                assert seen(world) == before, fuse
                apply(world)
            assert seen(world) == after, fuse
            (world.project / "persons").chmod(0o555)
            assert undo(world.artoo_home, TASK).refused == (), fuse
            assert (world.project / "persons").stat().st_mode & 0o777 == 0o555, fuse
            (world.project / "persons").chmod(0o755)
            assert seen(world) == before, fuse
            nothing_is_noted(world)
            fuse += stride
        assert fuse > 50

    as_plain_user(act)


@pytest.mark.parametrize("stride", [13, pytest.param(1, marks=pytest.mark.torture)])
def test_a_death_while_an_act_is_taken_back_leaves_no_mode_open(open_world: World, stride: int) -> None:
    """Nor one that the act had given: what is noted of a directory that was opened for the way back is the task's
    mode, and it is to have its old one."""
    world = open_world

    def failing(_: Record) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def fail() -> None:
        with pytest.MonkeyPatch.context() as patched, suppress(SandboxError):
            patched.setattr(Record, "mark_done", failing)
            apply(world)

    def act() -> None:
        fuse, died = 1, True
        while died:
            reset(world)
            before, known = seen(world), look(world)
            died = killed(fail, fuse)
            recover(world.artoo_home)
            if Views(world.artoo_home).place(TASK).exists:
                assert seen(world) == before, fuse
                assert look(world) == known, fuse
            else:
                assert undo(world.artoo_home, TASK).refused == (), fuse
                assert seen(world) == before, fuse
            nothing_is_noted(world)
            fuse += stride
        assert fuse > 100

    as_plain_user(act)


def test_undo_gives_a_directory_that_it_opened_its_old_mode(open_world: World) -> None:
    """The task had closed it; undo opens it to work in it, and that is not what it was."""
    world = open_world

    def act() -> None:
        reset(world)
        before = seen(world)
        apply(world)
        assert undo(world.artoo_home, TASK).refused == ()
        assert seen(world) == before

    as_plain_user(act)


def test_a_death_while_looking_leaves_no_mode_open(open_world: World) -> None:
    """The next one sees the same difference."""
    world = open_world

    def act() -> None:
        reset(world)
        known = look(world)
        assert {mode for _, mode in known} >= {0o555, 0o000}
        fuse = 1
        while killed(lambda: look(world), fuse):
            assert look(world) == known, fuse
            nothing_is_noted(world)
            fuse += 2
        assert fuse > 5

    as_plain_user(act)


@pytest.mark.parametrize("stride", [11, pytest.param(1, marks=pytest.mark.torture)])
@pytest.mark.parametrize("again", ["undo", "start"])
def test_a_death_while_undoing_leaves_no_mode_open(open_world: World, again: str, stride: int) -> None:
    """Neither of the directories that the act changed, nor of one that the person locked since."""
    world = open_world

    def act() -> None:
        fuse, died = 1, True
        while died:
            reset(world)
            (world.project / "persons").chmod(0o555)
            before = seen(world)
            (world.project / "persons").chmod(0o755)
            apply(world)
            (world.project / "persons").chmod(0o555)
            after = seen(world)
            died = killed(lambda: undo(world.artoo_home, TASK), fuse)
            if again == "undo" and list((world.artoo_home / "undo" / TASK).glob("*/journal.json")):
                undo(world.artoo_home, TASK)
            recover(world.artoo_home)
            if seen(world) != before:
                assert seen(world) == after, fuse
                assert undo(world.artoo_home, TASK).refused == (), fuse
            assert seen(world) == before, fuse
            nothing_is_noted(world)
            fuse += stride
        assert fuse > 30

    as_plain_user(act)
