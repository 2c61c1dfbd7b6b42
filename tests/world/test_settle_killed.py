"""kill -9 at every change on disk of settling: nothing half applied, nothing lost, always still to be settled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from layers import view_of
from sandbox_snapshots import Entry, snapshot
from sandbox_world import World
from settle_victim import PART, TASK

from artoo.world.carry import OPAQUE
from artoo.world.closing import opened
from artoo.world.recover import recover
from artoo.world.undo import undo
from artoo.world.view_place import Views

Tree = dict[str, Entry]
MOST = 2_000


def fill(project: Path) -> None:
    """The tree before."""
    for name in ("over", "gone", "mode", "swap", "log"):
        (project / name).write_text(f"old {name}\n")
    (project / "tree" / "inner").mkdir(parents=True)
    (project / "tree" / "inner" / "leaf").write_text("leaf")
    (project / "link").symlink_to("log")
    (project / "again" / "deep").mkdir(parents=True)
    for name in ("again/a", "again/old", "again/deep/old"):
        (project / name).write_text(name)


def work(home: Path) -> None:
    """Every kind of change."""
    project = home / "project"
    (project / "over").write_text("new over\n")
    (project / "gone").unlink()
    (project / "mode").chmod(0o711)
    (project / "swap").unlink()
    (project / "swap" / "deep").mkdir(parents=True)
    (project / "swap" / "deep" / "s").write_text("s")
    shutil.rmtree(project / "tree")
    (project / "tree").write_text("file now")
    (project / "link").unlink()
    (project / "link").symlink_to("mode")
    (project / "new" / "m").mkdir(parents=True)
    (project / "new" / "m" / "n").write_text("n")
    shutil.rmtree(project / "again")
    (project / "again" / "deep").mkdir(parents=True)
    for name in ("again/a", "again/b", "again/deep/a", "again/deep/b"):
        (project / name).write_text(f"new {name}")


def hide(upper: Path) -> None:
    """A directory of a layer hides all that is below it, as one does that a command made anew."""
    for whiteout in [child for child in upper.iterdir() if child.is_char_device()]:
        whiteout.unlink()
    os.setxattr(upper, OPAQUE, b"y")


class Victim:
    """Settles in processes that die."""

    def __init__(self, world: World) -> None:
        self.world = world
        program = Path(__file__).with_name("settle_victim.py")
        self._process = subprocess.Popen(
            [sys.executable, str(program), str(world.home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def reset(self, elsewhere: Path | None = None) -> None:
        """A fresh project, and a task's view over it; artoo's home is a link to `elsewhere`."""
        shutil.rmtree(self.world.project, ignore_errors=True)
        if elsewhere is None:
            shutil.rmtree(self.world.artoo_home, ignore_errors=True)
        else:
            if self.world.artoo_home.is_symlink():
                self.world.artoo_home.unlink()
            shutil.rmtree(self.world.artoo_home, ignore_errors=True)
            for inside in elsewhere.iterdir():
                shutil.rmtree(inside)
            self.world.artoo_home.symlink_to(elsewhere)
        self.world.project.mkdir()
        fill(self.world.project)
        upper = view_of(self.world, work, TASK).upper("task", 0)
        for name in ("again", "again/deep", "new", "new/m"):
            hide(upper / "project" / name)

    def settle(self, mode: str, fuse: int) -> bool:
        """Whether it came to its end."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{mode} {fuse}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip() == "0"

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@pytest.fixture
def victim(world: World) -> Iterator[Victim]:
    one = Victim(world)
    yield one
    one.close()


def now(world: World) -> Tree:
    return snapshot(world.project)


def finish(world: World) -> None:
    """What another process does afterwards: recovers, twice, and applies what is left."""
    recover(world.artoo_home)
    assert recover(world.artoo_home).finished == ()
    place = Views(world.artoo_home).find(TASK)
    if place is None:
        return
    with opened(place, world.artoo_home) as view:
        found = view.difference()
        assert found.conflicts == ()
        if found.empty:
            view.forget()
        else:
            assert view.apply(found, digest=found.digest).whole


def ends(victim: Victim, mode: str) -> tuple[Tree, Tree, Tree]:
    """The project before, after the mode alone, and after everything."""
    victim.reset()
    before = now(victim.world)
    assert victim.settle(mode, 0)
    after = now(victim.world)
    finish(victim.world)
    return before, after, now(victim.world) if mode != "discard" else before


def killed_at(victim: Victim, mode: str, fuse: int, known: tuple[Tree, Tree, Tree]) -> bool:
    """One death; whether there is a later moment to die at."""
    before, after, whole = known
    world = victim.world
    victim.reset()
    survived = victim.settle(mode, fuse)
    recover(world.artoo_home)
    seen = now(world)
    assert seen in (before, after), (mode, fuse)
    place = Views(world.artoo_home).find(TASK)
    if seen == before and mode != "discard":
        assert place is not None, (mode, fuse)
    finish(world)
    assert now(world) == (before if mode == "discard" and place is None else whole), (mode, fuse)
    if now(world) != before:
        assert undo(world.artoo_home, TASK).refused == (), (mode, fuse)
        assert now(world) == before, (mode, fuse)
    assert not (world.artoo_home / "views" / TASK).exists(), (mode, fuse)
    return not survived


@pytest.mark.parametrize(("mode", "stride"), [("all", 7), ("part", 7), ("keep", 1), ("discard", 5)])
def test_a_death_while_settling_loses_nothing(victim: Victim, mode: str, stride: int) -> None:
    """Before or after, never between; and whatever is left can be settled by the next process."""
    matrix(victim, mode, stride)


@pytest.mark.parametrize(("again", "stride"), [("undo", 5), ("start", 6)])
def test_a_death_while_undoing_loses_nothing(victim: Victim, again: str, stride: int) -> None:
    """Whoever comes next, an undo or a start, finds all that was to be put back, and puts it back."""
    undo_matrix(victim, again, stride)


@pytest.mark.parametrize("again", ["undo", "start"])
def test_a_death_while_undoing_from_another_file_system_loses_nothing(victim: Victim, again: str) -> None:
    """There what is put back is a copy, and its image goes after it."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        undo_matrix(victim, again, 11, Path(elsewhere))


@pytest.mark.torture
@pytest.mark.parametrize("again", ["undo", "start"])
def test_a_death_at_every_change_of_an_undo_loses_nothing(victim: Victim, again: str) -> None:
    """The same, at each single change on disk."""
    undo_matrix(victim, again, 1)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        undo_matrix(victim, again, 1, Path(elsewhere))


@pytest.mark.torture
@pytest.mark.parametrize("mode", ["all", "part", "discard"])
def test_a_death_at_every_change_loses_nothing(victim: Victim, mode: str) -> None:
    """The same, at each single change on disk."""
    matrix(victim, mode, 1)


def undo_matrix(victim: Victim, again: str, stride: int, elsewhere: Path | None = None) -> None:
    """Undoes what was applied, dying ever later; `elsewhere` is on another file system, for artoo's home."""
    world = victim.world
    fuse, survived = 1, False
    while not survived:
        victim.reset(elsewhere)
        before = now(world)
        assert victim.settle("all", 0)
        survived = victim.settle("undo", fuse)
        if again == "undo" and list((world.artoo_home / "undo" / TASK).glob("*/journal.json")):
            assert undo(world.artoo_home, TASK).refused == (), fuse
        report = recover(world.artoo_home)
        assert report.conflicts == (), fuse
        if now(world) != before:  # it had not begun
            assert report.finished == (), fuse
            assert undo(world.artoo_home, TASK).refused == (), fuse
        assert now(world) == before, fuse
        assert list((world.artoo_home / "undo" / TASK).glob("*")) == [], fuse
        fuse += stride
    assert fuse > 20, "it was hardly ever cut"


def matrix(victim: Victim, mode: str, stride: int) -> None:
    known = ends(victim, mode)
    if mode == "discard":
        victim.reset()
        finish(victim.world)
        known = (known[0], known[1], now(victim.world))
    assert set(PART) <= set(known[2]) or mode == "discard"
    assert not killed_at(victim, mode, MOST, known), "more changes than the matrix looks at"
    fuse = 1
    while killed_at(victim, mode, fuse, known):
        fuse += stride
    assert fuse > 1, "nothing was ever cut"
