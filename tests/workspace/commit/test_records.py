"""What is kept: damaged and old records, the list, pruning, the lock."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from commit_world import TASK, CommitWorld, write
from scenes import change, fill
from victim import killed

from artoo.contracts.errors import SandboxError
from artoo.workspace.commit import Keep, prune, records_of, recover, tasks_with_records, undo, undoable, unreadable
from artoo.workspace.commit.manifest import exclusive

_DAY = 86_400.0


def cut(path: Path) -> None:
    os.truncate(path, 10)


def manifest_of(world: CommitWorld, task: str) -> Path:
    return records_of(world.undo_home, task)[-1].place / "manifest.json"


def test_a_damaged_manifest_concerns_no_other_task(world: CommitWorld) -> None:
    """It is named, and kept; all else can be listed, undone and pruned."""
    world.begin()
    for task, name in (("one", "a"), ("two", "b"), ("three", "c")):
        assert world.apply(lambda p, name=name: write(p / name, "new"), task).applied
    cut(manifest_of(world, "two"))
    keep = Keep(days=30, total_bytes=1 << 30)
    assert recover(world.artoo_home).conflicts == ()
    assert {one.task_id for one in undoable(world.artoo_home, keep)} == {"one", "three"}
    assert [line.partition(":")[0] for line in unreadable(world.artoo_home)] == ["task two"]
    assert prune(world.artoo_home, keep) == 0
    undo(world.artoo_home, "one")
    undo(world.artoo_home, "three")
    assert {path.name for path in world.project.iterdir()} == {"b"}
    with pytest.raises(SandboxError, match=r"cannot be read.*before-images are in"):
        undo(world.artoo_home, "two")


def test_a_damaged_manifest_of_an_interrupted_apply_is_reported(world: CommitWorld) -> None:
    """At each start; other tasks are recovered and applied all the same."""
    world.begin(fill)
    effects = world.work(change)
    killed(lambda: world.apply_effects(effects), 9, renames=True)
    (record,) = records_of(world.undo_home, TASK)
    assert not record.done
    cut(record.place / "manifest.json")
    for _ in range(2):
        assert [one.path for one in recover(world.artoo_home).conflicts] == [str(record.place)]
    assert world.apply(lambda p: write(p / "other", "new"), "another").applied
    with pytest.raises(SandboxError, match="cannot be read"):
        world.apply_effects(effects)


def test_records_expire(world: CommitWorld) -> None:
    """The list names tasks with their end; records that are too large together go, the oldest first."""
    world.begin(lambda p: [(p / name).write_text("x" * 1_000) for name in "abc"])
    for name in "abc":
        assert world.apply(lambda p, name=name: write(p / name, "new"), name).applied
    keep = Keep(days=30, total_bytes=2_500)
    listed = undoable(world.artoo_home, keep)
    assert [(one.task_id, one.paths, one.transactions, one.bytes_kept) for one in listed] == [
        (name, 1, 1, 1_000) for name in "abc"
    ]
    assert listed[0].until == pytest.approx(listed[0].last_at + 30 * _DAY)
    assert prune(world.artoo_home, keep) == 1
    assert tasks_with_records(world.artoo_home) == ["b", "c"]
    with pytest.raises(SandboxError, match="nothing is kept of task a"):
        undo(world.artoo_home, "a")


def test_nothing_interrupted_is_pruned(world: CommitWorld) -> None:
    """Neither an apply nor an undo."""
    world.begin(fill)
    before = world.tree()
    effects = world.work(change)
    killed(lambda: world.apply_effects(effects), 9, renames=True)
    keep = Keep(days=0, total_bytes=0)
    assert prune(world.artoo_home, keep, now=4e9) == 0
    recover(world.artoo_home)
    assert world.tree() == before


def test_applies_wait_for_each_other(world: CommitWorld) -> None:
    """Another process that applies or undoes holds a lock."""
    world.begin()
    applied: list[bool] = []
    effects = world.work(lambda p: write(p / "a", "new"))
    with exclusive(world.undo_home):
        waits = threading.Thread(target=lambda: applied.append(world.apply_effects(effects).applied))
        waits.start()
        waits.join(0.2)
        assert applied == []
        assert not (world.project / "a").exists()
    waits.join()
    assert applied == [True]


def test_any_task_id_has_a_record(world: CommitWorld) -> None:
    """Also one that looks like a path."""
    world.begin()
    assert world.apply(lambda p: write(p / "a", "new"), "../odd/..").applied
    assert tasks_with_records(world.artoo_home) == ["../odd/.."]
    undo(world.artoo_home, "../odd/..")
    assert tasks_with_records(world.artoo_home) == []
