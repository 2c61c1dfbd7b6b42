"""Random trees and random changes: undo gives every tree back, and a death anywhere leaves one of two trees."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from commit_world import TASK, CommitWorld, tree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from victim import killed

from artoo.workspace.commit import records_of, recover, undo

NAMES = ("a", "b", "c", "a/a", "a/b", "b/c", "a/a/c", "b/c/a", "c/b", "c/b/a")
Operation = tuple[str, str, str, int]


def operations(most: int) -> st.SearchStrategy[list[Operation]]:
    """Draw what programs do to a tree; what cannot be done is left out when it is done."""
    kinds = st.sampled_from(("write", "remove", "mkdir", "link", "hardlink", "move", "chmod", "touch", "label"))
    path = st.sampled_from(NAMES)
    return st.lists(st.tuples(kinds, path, path, st.integers(0, 7)), max_size=most)


def perform(project: Path, listed: list[Operation]) -> None:
    for kind, one, other, number in listed:
        try:
            _perform(project / one, project / other, kind, number)
        except (OSError, shutil.Error):
            continue


def _perform(path: Path, other: Path, kind: str, number: int) -> None:
    if kind == "write":
        path.write_text("x" * number * 1_000 + str(number), encoding="utf-8")
    elif kind == "remove":
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    elif kind == "mkdir":
        path.mkdir(parents=True)
    elif kind == "link":
        path.symlink_to(("a", "b/c", "../a", "nowhere")[number % 4])
    elif kind == "hardlink":
        os.link(path, other, follow_symlinks=False)
    elif kind == "move":
        path.rename(other)
    elif kind == "chmod":
        path.chmod((0o755, 0o700, 0o644, 0o711, 0o600, 0o555, 0o750, 0o4755)[number])
    elif kind == "touch":
        os.utime(path, ns=(number, number * 1_000_000_000), follow_symlinks=False)
    else:
        os.setxattr(path, "user.number", str(number).encode(), follow_symlinks=False)


def check(before: list[Operation], changes: list[Operation], fuses: list[int]) -> None:
    with tempfile.TemporaryDirectory(prefix="artoo-property-") as place:
        world = CommitWorld(Path(place).resolve())
        world.begin(lambda project: perform(project, before))
        old = world.tree(times=True)
        effects = world.work(lambda made: perform(made, changes))
        new = tree(world.made, times=True)
        for fuse in fuses:
            killed(lambda: world.apply_effects(effects), fuse)
            recover(world.artoo_home)
            if any(record.done for record in records_of(world.undo_home, TASK)):
                assert world.tree(times=True) == new
                killed(lambda: undo(world.artoo_home, TASK), fuse)
                recover(world.artoo_home)
                finish_undo(world)
            assert world.tree(times=True) == old
        report = world.apply_effects(effects)
        assert report.applied
        assert world.tree(times=True) == new
        assert undo(world.artoo_home, TASK).refused == ()
        assert world.tree(times=True) == old
        assert world.records() == []


def finish_undo(world: CommitWorld) -> None:
    if records_of(world.undo_home, TASK):
        assert undo(world.artoo_home, TASK).refused == ()


Check = Callable[[list[Operation], list[Operation], list[int]], None]
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)


@settings(max_examples=25, deadline=None, suppress_health_check=SLOW)
@given(operations(20), operations(15), st.lists(st.integers(1, 200), max_size=2))
def test_apply_and_undo_of_random_changes(
    before: list[Operation], changes: list[Operation], fuses: list[int]
) -> None:
    """Apply makes the task's tree, undo gives the user's back; a death in between leaves one of both."""
    check(before, changes, fuses)


@pytest.mark.torture
@settings(max_examples=1_000, deadline=None, suppress_health_check=SLOW)
@given(operations(30), operations(25), st.lists(st.integers(1, 300), max_size=3))
def test_apply_and_undo_of_random_changes_at_depth(
    before: list[Operation], changes: list[Operation], fuses: list[int]
) -> None:
    """The same over many more trees."""
    check(before, changes, fuses)
