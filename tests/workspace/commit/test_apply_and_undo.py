"""Approved changes take effect completely, and undo gives back what was there."""

from __future__ import annotations

import os

from commit_world import TASK, CommitWorld, tree
from scenes import change, fill

from artoo.workspace.commit import records_of, undo


def test_apply_makes_the_tree_and_undo_restores_it(world: CommitWorld) -> None:
    """Contents, modes, attributes, links and times of files; every file is the one that it was, hard links too."""
    world.begin(fill)
    before = world.tree(times=True)
    inodes = world.tree(inodes=True)
    removed = (world.project / "removed").stat().st_mtime_ns
    report = world.apply(change, note="said")
    assert report.applied
    assert report.transaction
    assert world.tree(times=True) == tree(world.made, times=True)
    assert [record.note for record in records_of(world.undo_home, TASK)] == ["said"]
    undone = undo(world.artoo_home, TASK)
    assert undone.refused == ()
    assert sorted(undone.restored) == sorted(report.paths)
    assert world.tree(times=True) == before
    assert world.tree(inodes=True) == inodes
    assert (world.project / "removed").stat().st_mtime_ns == removed
    assert world.records() == []


def test_files_are_shared_with_a_workspace_that_is_deleted_afterwards(world: CommitWorld) -> None:
    """Nothing is copied then; but for a file with an attribute of overlayfs, which is not the user's."""
    world.begin(fill)
    before = world.tree(times=True)
    effects = world.work(change)
    os.setxattr(world.made / "over", "user.overlay.origin", b"x")
    assert world.apply_effects(effects, share=True).applied
    assert world.tree(times=True) == tree(world.made, times=True)
    shared = {name for name in ("over", "tree", "again/a") if (world.project / name).samefile(world.made / name)}
    assert shared == {"tree", "again/a"}
    assert os.listxattr(world.project / "over") == []
    assert undo(world.artoo_home, TASK).refused == ()
    assert world.tree(times=True) == before


def test_undo_has_the_old_content_although_a_program_wrote_by_another_name(world: CommitWorld) -> None:
    """A replaced file with other hard links is copied as well, because it can be changed by these."""
    world.begin(fill)
    assert world.apply(change).applied
    with (world.project / "twin").open("w") as file:
        file.write("written since\n")
    undone = undo(world.artoo_home, TASK)
    assert undone.refused == ()
    assert (world.project / "over2").read_text() == "old over2\n"
    assert (world.project / "twin").read_text() == "written since\n"
