"""A file with several names: what is put back by one of them is the file that the others lead to."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from layers import view_of
from sandbox_snapshots import snapshot
from sandbox_world import World
from test_lent import CHANGING, MOST, Crash, apply, interrupted

from artoo.contracts.changes import UndoReport
from artoo.contracts.errors import SandboxError
from artoo.world import prepare
from artoo.world.closing import opened
from artoo.world.journal import Record, records
from artoo.world.recover import recover
from artoo.world.undo import undo

TASK = "task-1"
Change = Callable[[Path], object]


def remove(project: Path) -> None:
    (project / "a").unlink()


def edit(project: Path) -> None:
    (project / "a").unlink()
    (project / "a").write_text("new\n")


def rename(project: Path) -> None:
    (project / "a").rename(project / "moved")


def remove_both(project: Path) -> None:
    (project / "a").unlink()
    (project / "a-too").unlink()


def directory_instead(project: Path) -> None:
    (project / "a").unlink()
    (project / "a").mkdir()
    (project / "a" / "x").write_text("x")


CHANGES = (remove, edit, rename, remove_both, directory_instead)


@pytest.fixture(autouse=True)
def linked(world: World) -> None:
    """Two names of one file."""
    begin(world)


def begin(world: World) -> None:
    for old in world.project.iterdir():
        old.unlink()
    (world.project / "a").write_text("old\n")
    os.link(world.project / "a", world.project / "a-too")


def is_one_file(world: World) -> bool:
    one, other = ((world.project / name).stat() for name in ("a", "a-too"))
    return one.st_ino == other.st_ino and one.st_nlink == 2


def put_back(world: World) -> UndoReport:
    report = undo(world.artoo_home, TASK)
    assert report.refused == ()
    return report


@pytest.mark.parametrize("change", CHANGES)
def test_an_undo_gives_the_name_back_to_the_file(world: World, change: Change) -> None:
    """Also where all its names had gone; nothing of it is kept then."""
    before = snapshot(world.project)
    apply(world, view_of(world, lambda home: change(home / "project")))
    assert put_back(world).separate == ()
    assert snapshot(world.project) == before
    assert is_one_file(world)


def fail(_: Record) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("change", CHANGES)
def test_an_act_that_failed_leaves_one_file(world: World, change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that all was put back."""
    monkeypatch.setattr(Record, "mark_done", fail)
    with pytest.raises(SandboxError, match=r"all was put back$"):
        apply(world, view_of(world, lambda home: change(home / "project")))
    assert list(records(world.artoo_home / "undo")) == []
    assert is_one_file(world)


@pytest.mark.parametrize("change", CHANGES)
def test_a_death_in_the_middle_of_it(world: World, change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each change on disk of an undo: the next start ends it, and it is one file."""
    before = snapshot(world.project)
    fuse = 0
    for fuse in range(1, MOST):
        begin(world)
        apply(world, view_of(world, lambda home: change(home / "project")))
        with monkeypatch.context() as patched:
            struck = interrupted(patched, fuse, Crash(), CHANGING)
            with suppress(Crash):
                undo(world.artoo_home, TASK)
        recover(world.artoo_home)
        with suppress(SandboxError):  # it is done
            put_back(world)
        assert {name: entry[4:] for name, entry in snapshot(world.project).items()} == {
            name: entry[4:] for name, entry in before.items()
        }, fuse
        assert is_one_file(world), fuse
        assert list(world.project.glob(".artoo-*")) == []
        if not struck:
            break
    assert 4 < fuse < MOST - 1


def test_a_file_that_was_written_to_by_its_other_name_stays_apart(world: World) -> None:
    """The old content comes back as a file of its own, which is said; the newer one stays."""
    apply(world, view_of(world, lambda home: remove(home / "project")))
    (world.project / "a-too").write_text("newer\n")
    assert put_back(world).separate == (f"{world.project}/a",)
    assert (world.project / "a").read_text() == "old\n"
    assert (world.project / "a-too").read_text() == "newer\n"


@pytest.fixture
def nameless(monkeypatch: pytest.MonkeyPatch) -> None:
    """No name of an old file can be kept: on another file system, or in the journal of an earlier artoo."""

    def refused(*_: object) -> bool:
        return False

    monkeypatch.setattr(prepare, "linked", refused)


@pytest.mark.usefixtures("nameless")
def test_where_no_name_could_be_kept_it_is_said(world: World) -> None:
    """The old content comes back as a file of its own."""
    apply(world, view_of(world, lambda home: edit(home / "project")))
    assert put_back(world).separate == (f"{world.project}/a",)
    assert (world.project / "a").read_text() == "old\n"


@pytest.mark.usefixtures("nameless")
def test_so_it_is_of_an_act_that_failed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """All was put back but that."""
    monkeypatch.setattr(Record, "mark_done", fail)
    with pytest.raises(SandboxError, match=r"all was put back; .*/a is a file of its own now"):
        apply(world, view_of(world, lambda home: edit(home / "project")))
    assert (world.project / "a").read_text() == "old\n"


@pytest.mark.parametrize(
    ("change", "said"), [(remove, "has 1 other hard link(s), which keep the old content"), (remove_both, "")]
)
def test_a_review_counts_the_names_that_stay(world: World, change: Change, said: str) -> None:
    """A name that goes in the same act keeps nothing."""
    with opened(view_of(world, lambda home: change(home / "project")), world.artoo_home) as view:
        assert {one.detail for one in view.difference().changes} == {said}


@pytest.mark.parametrize(("change", "copies"), [(remove, 1), (edit, 1), (remove_both, 3)])
def test_what_is_kept_counts_a_file_that_has_no_other_name(world: World, change: Change, copies: int) -> None:
    """It takes room as its copies do."""
    apply(world, view_of(world, lambda home: change(home / "project")))
    assert sum(record.images.bytes_kept() for record in records(world.artoo_home / "undo")) == copies * len("old\n")
