"""The system refuses in the middle: a full disk, no permission. Everything is as before, and nothing is lost."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from commit_world import TASK, CommitWorld, tree
from scenes import change, fill
from victim import failing

from artoo.contracts.errors import SandboxError
from artoo.workspace.commit import records_of, recover, undo

MOST = 3_000
Fresh = Callable[[], CommitWorld]


@pytest.fixture
def fresh(tmp_path: Path) -> Fresh:
    """A new project each time."""
    count = iter(range(MOST))

    def make() -> CommitWorld:
        world = CommitWorld(tmp_path / str(next(count)))
        world.begin(fill)
        return world

    return make


@pytest.mark.parametrize("stride", [47, pytest.param(1, marks=pytest.mark.torture)])
def test_a_failure_at_any_operation_changes_nothing(fresh: Fresh, stride: int) -> None:
    """Everything is as before, no record is left, and the next apply takes effect."""
    for fuse in range(1, MOST, stride):
        world = fresh()
        before = world.tree(times=True)
        effects = world.work(change)
        with failing(fuse) as failed:
            try:
                applied = world.apply_effects(effects).applied
            except SandboxError as error:
                applied = False
                assert "space" in str(error)
        if not failed:
            return
        if not applied:
            assert world.tree(times=True) == before, f"{failed} at {fuse}"
            recover(world.artoo_home)
            assert world.records() == []
            assert world.apply_effects(effects).applied
        assert world.tree(times=True) == tree(world.made, times=True)
        recover(world.artoo_home)
        undo(world.artoo_home, TASK)
        assert world.tree(times=True) == before
        assert world.records() == []


@pytest.mark.parametrize("stride", [47, pytest.param(1, marks=pytest.mark.torture)])
def test_a_disk_that_fails_for_good_is_restored_at_the_next_start(fresh: Fresh, stride: int) -> None:
    """Nor can anything be taken back then; the error says what to do."""
    for fuse in range(1, MOST, stride):
        world = fresh()
        before = world.tree(times=True)
        effects = world.work(change)
        with failing(fuse, errno.EIO, for_good=True) as failed:
            try:
                applied = world.apply_effects(effects).applied
            except SandboxError as error:
                applied = False
                assert (
                    "nothing was changed" in str(error) or "as before" in str(error) or "start artoo" in str(error)
                )
        if not failed:
            return
        recover(world.artoo_home)
        done = applied or any(record.done for record in records_of(world.undo_home, TASK))
        assert world.tree(times=True) == (tree(world.made, times=True) if done else before), f"at {fuse}"


@pytest.mark.parametrize("stride", [47, pytest.param(1, marks=pytest.mark.torture)])
def test_an_undo_that_fails_anywhere_can_be_repeated(fresh: Fresh, stride: int) -> None:
    """What was restored is, and the rest is restored the next time."""
    for fuse in range(1, MOST, stride):
        world = fresh()
        before = world.tree(times=True)
        assert world.apply(change).applied
        with failing(fuse) as failed:
            try:
                undo(world.artoo_home, TASK)
            except SandboxError as error:
                assert "repeat the undo" in str(error) or "cannot be written" in str(error)
        if not failed:
            return
        if records_of(world.undo_home, TASK):
            assert undo(world.artoo_home, TASK).refused == ()
        recover(world.artoo_home)
        assert world.tree(times=True) == before, f"{failed} at {fuse}"
        assert world.records() == []
