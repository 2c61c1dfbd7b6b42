"""kill -9 at every change on disk of an apply, an undo and a recovery: all old or all new, and nothing is lost."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commit_world import TASK, CommitWorld, Tree, remove, tree
from scenes import change, fill
from victim import killed

from artoo.workspace.commit import records_of, recover, undo
from plain_user import act_as_plain_user

MOST = 3_000
_SEED = 44


class Scene:
    """The same project again and again, with a task's version of it, and artoo's home where a test wants it."""

    def __init__(self, place: Path, artoo_home: Path | None = None) -> None:
        self.place = place
        self.elsewhere = artoo_home
        self.count = 0
        world = self.fresh()
        self.before = world.tree(times=True)
        effects = world.work(change)
        self.after = tree(world.made, times=True)
        assert world.apply_effects(effects).applied
        assert world.tree(times=True) == self.after

    def fresh(self) -> CommitWorld:
        self.count += 1
        home = None if self.elsewhere is None else self.elsewhere / str(self.count)
        world = CommitWorld(self.place / str(self.count), home)
        world.begin(fill)
        return world

    def applied(self) -> CommitWorld:
        world = self.fresh()
        assert world.apply(change).applied
        return world

    def discard(self, world: CommitWorld) -> None:
        for path in {world.base, world.artoo_home}:
            if path.exists():
                remove(path)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.fixture
def two_disks(tmp_path: Path) -> Iterator[Scene]:
    """artoo's home lies on another file system than the project."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="artoo-test-") as other:
        if os.stat(other).st_dev == tmp_path.stat().st_dev:
            pytest.skip("there is only one file system here")
        yield Scene(tmp_path, Path(other))


def now(world: CommitWorld) -> Tree:
    return world.tree(times=True)


def one_death_of_apply(scene: Scene, fuse: int, *, second: int = 0, share: bool = False) -> bool:
    """Return True if the process came to its end. `second`: the recovery is killed too, at this change."""
    world = scene.fresh()
    effects = world.work(change)
    ended = killed(lambda: world.apply_effects(effects, share=share), fuse)
    done = any(record.done for record in records_of(world.undo_home, TASK))
    if second:
        killed(lambda: recover(world.artoo_home), second)
    report = recover(world.artoo_home)
    assert report.conflicts == ()
    assert now(world) == (scene.after if done else scene.before), f"killed at {fuse}"
    assert recover(world.artoo_home).undone == ()
    if not done:
        assert world.records() == []
        assert tree(world.made, times=True) == scene.after
        assert world.apply_effects(effects, share=share).applied
        assert now(world) == scene.after
    assert undo(world.artoo_home, TASK).refused == ()
    assert now(world) == scene.before
    assert world.records() == []
    scene.discard(world)
    return ended


def one_death_of_undo(scene: Scene, fuse: int, again: Callable[[CommitWorld], object]) -> bool:
    """An undo is killed; then a start, or another undo, restores everything that was to be restored."""
    world = scene.applied()
    ended = killed(lambda: undo(world.artoo_home, TASK), fuse)
    again(world)
    if any(record.done for record in records_of(world.undo_home, TASK)):  # it was killed before it began
        assert undo(world.artoo_home, TASK).refused == ()
    assert now(world) == scene.before, f"killed at {fuse}"
    assert recover(world.artoo_home).conflicts == ()
    assert world.records() == []
    scene.discard(world)
    return ended


def undo_again(world: CommitWorld) -> None:
    if records_of(world.undo_home, TASK):
        undo(world.artoo_home, TASK)


def start(world: CommitWorld) -> None:
    recover(world.artoo_home)


def matrix(one: Callable[[int], bool], stride: int, offset: int = 1) -> None:
    for fuse in range(offset, MOST, stride):
        if one(fuse):
            return
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("stride", [41, pytest.param(1, marks=pytest.mark.torture)])
def test_apply_killed_anywhere_is_all_old_or_all_new(scene: Scene, stride: int, share: bool) -> None:
    """The task's files are as before; afterwards they can be applied, and undone."""
    matrix(lambda fuse: one_death_of_apply(scene, fuse, share=share), stride)


@pytest.mark.parametrize("stride", [83, pytest.param(1, marks=pytest.mark.torture)])
def test_apply_killed_with_two_file_systems(two_disks: Scene, stride: int) -> None:
    """Contents are staged next to their targets there; no staged file is left."""
    matrix(lambda fuse: one_death_of_apply(two_disks, fuse), stride)


@pytest.mark.parametrize("again", [undo_again, start])
@pytest.mark.parametrize("stride", [53, pytest.param(1, marks=pytest.mark.torture)])
def test_undo_killed_anywhere_is_completed(
    scene: Scene, again: Callable[[CommitWorld], object], stride: int
) -> None:
    """By a start, or by a second undo."""
    matrix(lambda fuse: one_death_of_undo(scene, fuse, again), stride)


@pytest.mark.parametrize("stride", [83, pytest.param(1, marks=pytest.mark.torture)])
def test_undo_killed_with_two_file_systems(two_disks: Scene, stride: int) -> None:
    """The old contents come back as copies."""
    matrix(lambda fuse: one_death_of_undo(two_disks, fuse, start), stride)


@pytest.mark.parametrize("pairs", [6, pytest.param(400, marks=pytest.mark.torture)])
def test_recovery_killed_anywhere_can_be_repeated(scene: Scene, pairs: int) -> None:
    """An apply is killed, then the recovery too."""
    chance = random.Random(_SEED)
    for _ in range(pairs):
        one_death_of_apply(scene, chance.randrange(100, 320), second=chance.randrange(1, 220))


@pytest.mark.torture
def test_recovery_killed_with_two_file_systems(two_disks: Scene) -> None:
    """The same, where contents are copied."""
    chance = random.Random(_SEED)
    for _ in range(200):
        one_death_of_apply(two_disks, chance.randrange(100, 420), second=chance.randrange(1, 320))


@pytest.mark.parametrize("stride", [97, pytest.param(1, marks=pytest.mark.torture)])
def test_apply_and_undo_of_a_plain_user_killed_anywhere(stride: int) -> None:
    """The same without root's rights."""

    def matrices() -> None:
        with tempfile.TemporaryDirectory(prefix="artoo-plain-") as place:
            scene = Scene(Path(place).resolve())
            matrix(lambda fuse: one_death_of_apply(scene, fuse), stride)
            matrix(lambda fuse: one_death_of_undo(scene, fuse, start), stride)

    act_as_plain_user(matrices)
