"""An act that fails is taken back: whatever cuts that, nothing goes of which the only copy has just come back."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from layers import view_of
from sandbox_snapshots import snapshot
from sandbox_world import World
from test_lent import CHANGING, MOST, Crash, apply, begun, difference, interrupted, paths_of, takes_trunk

from artoo.contracts.errors import SandboxError
from artoo.world import converge, files, transaction
from artoo.world.exchange import Place
from artoo.world.files import Reach
from artoo.world.journal import Record, StateRecord, records
from artoo.world.move import Move
from artoo.world.recover import recover
from artoo.world.undo import undo
from artoo.world.view_place import ViewPlace

__all__ = ["takes_trunk"]

Moves = list[Move]


def refusing(error: int) -> Callable[..., None]:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(error, os.strerror(error))

    return refuse


def waits(world: World, change: Callable[[Path], object], said: str = "") -> None:
    """A view with these changes to the project, which then cannot be applied: all is put back."""
    place = view_of(world, lambda home: change(home / "project"))
    before = snapshot(world.project)
    with pytest.raises(SandboxError, match=rf"{said}\); all was put back$"):
        apply(world, place)
    assert snapshot(world.project) == before
    assert list(records(world.artoo_home / "undo")) == []
    assert difference(world, place).effects


# --- a crash in the middle --------------------------------------------------------------------------------------


@pytest.mark.parametrize("marked", [True, False])
def test_what_had_come_back_does_not_go_again(
    world: World, monkeypatch: pytest.MonkeyPatch, marked: bool, stride: int = 4
) -> None:
    """An act that failed at its end is cut at a change of its taking back: a start goes on with that. Where there
    was no room to note it the act may be finished, too, but only where nothing is lost by that."""
    cut_while_taken_back(world, monkeypatch, marked=marked, stride=stride)


@pytest.mark.torture
@pytest.mark.parametrize("marked", [True, False])
def test_what_had_come_back_never_goes_again(world: World, monkeypatch: pytest.MonkeyPatch, marked: bool) -> None:
    """The same, at each single change on disk."""
    cut_while_taken_back(world, monkeypatch, marked=marked, stride=1)


def cut_while_taken_back(world: World, monkeypatch: pytest.MonkeyPatch, *, marked: bool, stride: int) -> None:
    fuse, ends = 0, {"before": 0, "after": 0}
    for fuse in range(1, MOST, stride):
        place = begun(world)
        before, agreed = snapshot(world.project), paths_of(difference(world, place))
        with monkeypatch.context() as patched:
            struck: list[str] = []

            def fail(_: Record, patched: pytest.MonkeyPatch = patched, fuse: int = fuse) -> None:
                nonlocal struck
                struck = interrupted(patched, fuse, Crash(), CHANGING)
                raise OSError(errno.EIO, os.strerror(errno.EIO))

            patched.setattr(Record, "mark_done", fail)
            if not marked:
                patched.setattr(Record, "begin_return", refusing(errno.ENOSPC))
            with suppress(Crash, SandboxError):
                apply(world, place)
        if not struck:
            break
        begun_to = any(record.is_returning for record in records(world.artoo_home / "undo"))
        recover(world.artoo_home)
        assert list(world.home.rglob(".artoo-*")) == []
        if place.exists:
            assert snapshot(world.project) == before, fuse
            assert paths_of(difference(world, place)) == agreed, fuse
            ends["before"] += 1
            continue
        assert not begun_to, fuse
        ends["after"] += 1
        assert undo(world.artoo_home, "task-1").refused == (), fuse
        assert snapshot(world.project) == before, fuse
    assert ends["before"] > 1
    assert fuse < MOST - stride


def test_an_act_whose_files_came_back_is_not_finished(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that an earlier artoo left half taken back, without a word of that."""
    for name in "bcz":
        (world.project / name).write_text(name)
    before = snapshot(world.project)

    def change(home: Path) -> None:
        for name in "bc":
            (home / "project" / name).unlink()
        (home / "project" / "z").write_text("new")

    place = view_of(world, change)
    real = transaction.converge

    def cut(moves: Moves) -> None:
        real([move for move in moves if move.relative.endswith("/b")])
        raise Crash

    def begin(_: Record) -> None:
        monkeypatch.setattr(transaction, "converge", cut)

    with monkeypatch.context() as patched:
        patched.setattr(Record, "mark_done", refusing(errno.EIO))
        patched.setattr(Record, "begin_return", begin)
        with pytest.raises(Crash):
            apply(world, place)
    monkeypatch.undo()
    assert recover(world.artoo_home).finished == ()
    assert snapshot(world.project) == before
    assert difference(world, place).effects


def test_a_disk_that_fails_for_good_is_told_as_what_it_is(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor can what was prepared be removed: a start does that."""
    place = begun(world)
    before = snapshot(world.project)
    with monkeypatch.context() as patched:
        patched.setattr(Record, "commit", refusing(errno.EROFS))
        patched.setattr(transaction, "remove_tree", refusing(errno.EROFS))
        with pytest.raises(SandboxError, match=r"Read-only file system.*nothing was changed$"):
            apply(world, place)
    recover(world.artoo_home)
    assert snapshot(world.project) == before
    assert list(records(world.artoo_home / "undo")) == []
    apply(world, place)


# --- what was not carried out needs no taking back --------------------------------------------------------------


def _change(project: Path) -> None:
    (project / "a").write_text("new a")
    (project / "b").unlink()
    (project / "n").write_text("n")


def test_what_cannot_be_reached_was_not_changed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory was mounted read-only meanwhile: no rename goes there, and the image is a copy."""
    for name in ("a", "b"):
        (world.project / name).write_text(name)
    real_exchange, real_copy = converge.exchange, files.copy_node

    def exchange(one: Place, other: Place) -> None:
        if "a" in (one[1], other[1]) or ".artoo-" in one[1]:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        real_exchange(one, other)

    def copy(directory: int, name: str, state: StateRecord, target: Path) -> None:
        if target.name.startswith(".artoo-"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        real_copy(directory, name, state, target)

    def image(directory: int, name: str, before: StateRecord, kept: str) -> int:
        real_copy(directory, name, before, Path(kept))
        return os.lstat(kept).st_ino

    monkeypatch.setattr(converge, "exchange", exchange)
    monkeypatch.setattr(converge, "copy_node", copy)
    monkeypatch.setattr(converge, "keep_image", image)
    waits(world, _change)


def test_what_came_by_a_copy_is_taken_back_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Across file systems what is in place has another inode than the journal says; it goes all the same."""
    for name in ("a", "b"):
        (world.project / name).write_text(name)
    real_exchange, real_new = converge.exchange, converge.put_new

    def beside_only(real: Callable[[Place, Place], None]) -> Callable[[Place, Place], None]:
        def rename(one: Place, other: Place) -> None:
            if os.fstat(one[0]).st_ino != os.fstat(other[0]).st_ino:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            real(one, other)

        return rename

    monkeypatch.setattr(converge, "exchange", beside_only(real_exchange))
    monkeypatch.setattr(converge, "put_new", beside_only(real_new))
    monkeypatch.setattr(Record, "mark_done", refusing(errno.EIO))
    waits(world, _change)


def test_what_was_never_removed_is_not_missed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the before-image is another file: what has a second name is copied."""
    (world.project / "d").mkdir()
    (world.project / "d" / "x").write_text("x")
    os.link(world.project / "d" / "x", world.project / "x-again")
    monkeypatch.setattr(converge, "put_new", refusing(errno.EPERM))
    waits(world, lambda project: shutil.rmtree(project / "d"))


def test_metadata_that_was_refused_is_not_given_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of somebody else's directory the mode cannot be set: neither to what was wanted nor to what it still is."""
    (world.project / "b").write_text("b")

    def change(project: Path) -> None:
        (project / "b").unlink()
        (project / "n").write_text("n")
        project.chmod(0o711)

    monkeypatch.setattr(files, "set_mode", refusing(errno.EPERM))
    waits(world, change, f"not permitted: '{world.project}'")


@pytest.mark.parametrize("name", ["a", "n"])
def test_what_somebody_changed_after_a_crash_is_not_the_views_own_file(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str, takes_trunk: bool
) -> None:
    """Its file had a name in the view again when the process died: what a command writes there stays there."""
    if takes_trunk and name == "a":
        pytest.skip("what changes places has one name at any time")
    place = cut_after(world, monkeypatch, name)
    assert [one.path for one in recover(world.artoo_home).conflicts] == [f"{world.project}/{name}"]
    (place.upper("task", 0) / "project" / name).write_text("the task goes on")
    assert (world.project / name).read_text() == ("new a" if name == "a" else "n") + "mine"


def test_a_copy_that_had_no_room_leaves_nothing_in_the_view(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's file that is to become the view's own: half of it is no file that the task made."""
    place = cut_after(world, monkeypatch, "n")
    layer = place.upper("task", 0)
    (now,) = world.artoo_home.rglob("up/project")  # the trunk is on its way
    before = sorted(os.listdir(now))
    with monkeypatch.context() as patched:
        patched.setattr(files, "_copy_range", refusing(errno.ENOSPC))
        recover(world.artoo_home)
    assert sorted(os.listdir(layer / "project")) == before
    (world.project / "saved").write_text("mine alone")
    (world.project / "saved").rename(world.project / "n")
    recover(world.artoo_home)
    assert sorted(os.listdir(layer / "project")) == before
    assert sorted(os.listdir(layer.parent)) == ["up", "work"]


def cut_after(world: World, monkeypatch: pytest.MonkeyPatch, name: str) -> ViewPlace:
    """A process dies when it has just given one name back to the view; then somebody writes to that file."""
    for old in ("a", "b"):
        (world.project / old).write_text(old)
    place = view_of(world, lambda home: _change(home / "project"))
    real = converge._give_back  # pyright: ignore[reportPrivateUsage]

    def died(move: Move, reach: Reach) -> None:
        real(move, reach)
        if move.owed is not None and move.relative.endswith(f"/{name}"):
            raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(Record, "mark_done", refusing(errno.EIO))
        patched.setattr(converge, "_give_back", died)
        with pytest.raises(Crash):
            apply(world, place)
    with (world.project / name).open("a") as file:
        file.write("mine")
    return place
