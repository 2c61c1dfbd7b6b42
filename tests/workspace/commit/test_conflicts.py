"""The user changes files between the review, the apply and the undo: the user's version always stays."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commit_world import TASK, CommitWorld, tree, write
from scenes import change, fill
from victim import killed

from artoo.contracts.errors import SandboxError
from artoo.workspace.commit import execute, recover, undo
from artoo.workspace.commit.dirfd_ops import Place

Meddle = Callable[[Path], object]
MINE = "the user's own"


def move_away(path: Path, link: bool = False) -> None:
    path.rename(path.with_name("moved"))
    if link:
        path.symlink_to("moved")


def same_again(path: Path) -> None:
    """Write the same content into another file with another time."""
    write(path, path.read_text(encoding="utf-8"))


def rewritten(path: Path) -> None:
    """Write in place, with the same length and the old times."""
    was = path.stat()
    path.write_text("X" * was.st_size, encoding="utf-8")
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


CONFLICTS: list[tuple[Meddle, str]] = [
    (lambda p: write(p / "over", MINE), "over"),
    (lambda p: rewritten(p / "over"), "over"),
    (lambda p: (p / "over").chmod(0o600), "over"),
    (lambda p: (p / "gone").write_text(MINE), "gone"),
    (lambda p: (p / "over").unlink(), "over"),
    (lambda p: (p / "mode").write_text(MINE), "mode"),
    (lambda p: ((p / "over").unlink(), (p / "over").mkdir()), "over"),
    (lambda p: (p / "new").write_text(MINE), "new"),
    (lambda p: (p / "tree" / "inner" / "mine").write_text(MINE), "tree/inner"),
    (lambda p: (p / "removed" / "mine").write_text(MINE), "removed"),
    (lambda p: (p / "tree").chmod(0o700), "tree"),
    (lambda p: ((p / "link").unlink(), (p / "link").symlink_to("over")), "link"),
    (lambda p: move_away(p / "again"), "again/a"),
    (lambda p: move_away(p / "again", link=True), "again/a"),
    (lambda p: ((p / "new").mkdir(), (p / "new" / "n2").write_text(MINE)), "new/n2"),
]


@pytest.mark.parametrize("number", range(len(CONFLICTS)))
def test_a_changed_path_is_a_conflict_and_nothing_is_applied(world: CommitWorld, number: int) -> None:
    """The path is named; the user's files are as the user left them."""
    meddle, name = CONFLICTS[number]
    world.begin(fill)
    effects = world.work(change)
    meddle(world.project)
    before = world.tree(times=True, inodes=True)
    report = world.apply_effects(effects)
    assert not report.applied
    assert str(world.project / name) in {conflict.path for conflict in report.conflicts}
    assert world.tree(times=True, inodes=True) == before
    assert world.records() == []


def test_the_same_content_in_another_file_is_no_conflict(world: CommitWorld) -> None:
    """So git and editors leave files; undo restores that version."""
    world.begin(fill)
    effects = world.work(change)
    for name in ("over", "gone", "again/old"):
        same_again(world.project / name)
    before = world.tree(times=True)
    assert world.apply_effects(effects).applied
    assert undo(world.artoo_home, TASK).refused == ()
    assert world.tree(times=True) == before


def test_a_directory_that_the_user_made_too_is_no_conflict(world: CommitWorld) -> None:
    """It stays at an undo, with what the user put there."""
    world.begin(fill)
    effects = world.work(change)
    (world.project / "new").mkdir(mode=0o755)
    (world.project / "new" / "mine").write_text(MINE)
    assert world.apply_effects(effects).applied
    assert undo(world.artoo_home, TASK).refused == ()
    assert [path.name for path in (world.project / "new").iterdir()] == ["mine"]


def meddling(monkeypatch: pytest.MonkeyPatch, name: str, meddle: Callable[[], object], turn: int = 1) -> None:
    """Meddle at the last instant before the `turn`th rename of this kind."""
    real = getattr(execute, name)
    turns = [0]

    def late(one: Place, other: Place) -> object:
        turns[0] += 1
        if turns[0] == turn:
            meddle()
        return real(one, other)

    monkeypatch.setattr(execute, name, late)


def saved(path: Path) -> None:
    write(path, MINE)


def cannot_exchange(one: Place, other: Place) -> bool:
    """Behave as a system without exchanging renames."""
    return False


def three(project: Path) -> None:
    for name in ("a", "n", "z"):
        write(project / name, "task")


@pytest.mark.parametrize("exchanges", [True, False])
@pytest.mark.parametrize("meddle", [saved, Path.unlink])
def test_a_save_at_the_last_instant_stays(
    world: CommitWorld, monkeypatch: pytest.MonkeyPatch, meddle: Meddle, exchanges: bool
) -> None:
    """What comes out of the exchange is not what was approved: it gets its name back, and all is restored."""
    world.begin(lambda p: (p / "n").write_text("old"))
    effects = world.work(three)
    if exchanges:
        meddling(monkeypatch, "exchange", lambda: meddle(world.project / "n"))
    else:
        monkeypatch.setattr(execute, "exchange", cannot_exchange)
        meddling(monkeypatch, "put_new", lambda: meddle(world.project / "n"))
    report = world.apply_effects(effects)
    assert not report.applied
    assert [conflict.path for conflict in report.conflicts] == [str(world.project / "n")]
    now = {path.name: path.read_text() for path in world.project.iterdir()}
    assert now in ({"n": MINE}, {})
    assert world.records() == []


def test_a_file_that_appears_at_the_last_instant_stays(world: CommitWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Creating is exclusive; the rest is taken back."""
    world.begin()
    effects = world.work(three)
    meddling(monkeypatch, "put_new", lambda: (world.project / "n").write_text(MINE))
    assert not world.apply_effects(effects).applied
    assert {path.name: path.read_text() for path in world.project.iterdir()} == {"n": MINE}


def test_a_file_saved_at_the_last_instant_is_not_deleted(
    world: CommitWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A removal takes away what was approved, and nothing newer."""
    world.begin(fill)
    before = world.tree()
    effects = world.work(lambda p: [(p / name).unlink() for name in ("gone", "log", "over")])
    meddling(monkeypatch, "put_new", lambda: write(world.project / "log", MINE), turn=2)
    assert not world.apply_effects(effects).applied
    assert (world.project / "log").read_text() == MINE
    now = world.tree()
    assert {name for name in before if now.get(name) != before[name]} == {"log"}


def test_a_save_right_before_the_process_dies_comes_back(world: CommitWorld) -> None:
    """It came out of the exchange, and nobody looked at it: it is the user's file, not the before-image."""
    world.begin(lambda p: (p / "n").write_text("old"))
    effects = world.work(three)

    def dies() -> None:
        real = execute.exchange

        def late(one: Place, other: Place) -> bool:
            write(world.project / "n", MINE)
            real(one, other)
            os._exit(0)

        execute.exchange = late
        world.apply_effects(effects)

    assert killed(dies, 0)
    assert (world.project / "n").read_text() == "task"
    recover(world.artoo_home)
    assert {path.name: path.read_text() for path in world.project.iterdir()} == {"n": MINE}


EDITS: list[tuple[Meddle, set[str]]] = [
    (lambda p: write(p / "over", MINE), {"over"}),
    (lambda p: rewritten(p / "over"), {"over"}),
    (lambda p: (p / "over").unlink(), {"over"}),
    (lambda p: (p / "new" / "m" / "n").chmod(0o755), {"new/m/n", "new/m", "new"}),
    (lambda p: (p / "new" / "mine").write_text(MINE), {"new"}),
    (lambda p: write(p / "tree", MINE), {"tree", "tree/inner", "tree/inner/leaf"}),
    (lambda p: (p / "mode").chmod(0o777), {"mode"}),
    (lambda p: os.setxattr(p / "labelled", "user.label", b"mine"), {"labelled"}),
    (lambda p: (p / "gone").write_text(MINE), {"gone"}),
    (lambda p: (p / "removed").write_text(MINE), {"removed", "removed/x"}),
    (lambda p: (p / "swap" / "deep" / "mine").write_text(MINE), {"swap", "swap/deep"}),
    (lambda p: move_away(p / "again"), {"again/a", "again/old", "again/deep/old"}),
    (
        lambda p: move_away(p / "again", link=True),
        {"again/a", "again/b", "again/deep/a", "again/old", "again/deep/old"},
    ),
]


@pytest.mark.parametrize("number", range(len(EDITS)))
def test_undo_leaves_what_the_user_changed_since_and_names_it(world: CommitWorld, number: int) -> None:
    """The rest is restored. What was left is named alone the next time."""
    edit, left = EDITS[number]
    world.begin(fill)
    before = world.tree()
    assert world.apply(change).applied
    applied = world.tree()
    edit(world.project)
    edited = world.tree()
    report = undo(world.artoo_home, TASK)
    refused = {os.path.relpath(conflict.path, world.project) for conflict in report.refused}
    assert refused == left
    now = world.tree()
    for name in before.keys() | edited.keys() | now.keys():
        if name in left:
            assert now.get(name) == edited.get(name), name
        elif edited.get(name) == applied.get(name):
            assert now.get(name) == before.get(name), name
    again = undo(world.artoo_home, TASK)
    assert {os.path.relpath(conflict.path, world.project) for conflict in again.refused} == left
    assert again.restored == ()


def test_what_had_no_place_comes_back_later(world: CommitWorld) -> None:
    """The user removes what was in the way, and undoes once more."""
    world.begin(fill)
    before = world.tree(times=True)
    assert world.apply(change).applied
    (world.project / "removed").write_text(MINE)
    undo(world.artoo_home, TASK)
    (world.project / "removed").unlink()
    assert undo(world.artoo_home, TASK).refused == ()
    assert world.tree(times=True) == before
    assert world.records() == []


def test_a_program_that_still_writes_the_old_file_is_noticed(world: CommitWorld) -> None:
    """The before-image is that file: what was written to it since is not what was there."""
    world.begin(fill)
    with (world.project / "log").open("a") as log:
        assert world.apply(lambda p: write(p / "log", "new")).applied
        log.write("one more line")
    report = undo(world.artoo_home, TASK)
    assert [conflict.path for conflict in report.refused] == [str(world.project / "log")]
    assert (world.project / "log").read_text() == "new"


def test_several_applies_of_a_task_are_undone_newest_first(world: CommitWorld) -> None:
    """A path of which only the last change could be undone is named."""
    world.begin(fill)
    before = world.tree(times=True)
    for text in ("one", "two", "three"):
        assert world.apply(lambda p, text=text: write(p / "over", text)).applied
    assert undo(world.artoo_home, TASK).restored == (str(world.project / "over"),)
    assert world.tree(times=True) == before
    with pytest.raises(SandboxError, match="nothing is kept"):
        undo(world.artoo_home, TASK)


def test_a_change_after_a_crash_stays(world: CommitWorld) -> None:
    """The rest is taken back; what the user's version replaced can be undone later."""
    world.begin(fill)
    before = world.tree()
    effects = world.work(change)
    fuse = 1
    while killed(lambda: world.apply_effects(effects), fuse) or (world.project / "over").read_text()[:3] == "old":
        recover(world.artoo_home)
        fuse += 5
    write(world.project / "over", MINE)
    report = recover(world.artoo_home)
    assert [conflict.path for conflict in report.conflicts] == [str(world.project / "over")]
    assert len(report.undone) == 1
    now = world.tree()
    assert {name for name in before if now.get(name) != before[name]} == {"over"}
    (world.project / "over").unlink()
    assert recover(world.artoo_home).conflicts == ()
    assert tree(world.project)["log"] == before["log"]
