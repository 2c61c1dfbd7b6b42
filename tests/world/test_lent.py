"""A view lends its own files to the act: whatever interrupts it, the view has them again, or they are in place."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from layers import view_of
from sandbox_snapshots import Entry, snapshot
from sandbox_world import World
from test_settle_killed import fill, work

from artoo.contracts.errors import SandboxError
from artoo.world import converge, prepare
from artoo.world.closing import opened
from artoo.world.difference import Difference
from artoo.world.exchange import Place, exchange, put_new
from artoo.world.journal import records
from artoo.world.pending import Keeping, PendingRecord, expire, write_pending
from artoo.world.recover import recover
from artoo.world.taken import bytes_kept
from artoo.world.undo import undo
from artoo.world.view_place import ViewPlace

MINE = "the person's own, after all"
MAKING = ("rename", "link", "mkdir", "chmod", "utime")
CHANGING = (*MAKING, "unlink", "rmdir", "fsync")
MOST = 300
Tree = dict[str, Entry]


class Crash(BaseException):
    """The process is gone: nobody handles it."""


def interrupted(
    monkeypatch: pytest.MonkeyPatch, fuse: int, error: BaseException, names: Iterable[str]
) -> list[str]:
    """The Nth change on disk is not made, but raises this. Which it was is in the list afterwards."""
    count = itertools.count(1)
    struck: list[str] = []

    def watched(real: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            if next(count) == fuse:
                struck.append(real.__name__)
                raise error
            return real(*args, **more)

        return call

    for name in names:
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    for rename in (exchange, put_new):
        monkeypatch.setattr(converge, rename.__name__, watched(rename))
    return struck


@pytest.fixture(params=[True, False], ids=["with the trunk", "file by file"], autouse=True)
def takes_trunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """A whole act takes the trunk with it; where names cannot be exchanged, and in parts, it takes single files."""

    def cannot(_: Path) -> bool:
        return False

    if not request.param:
        monkeypatch.setattr(prepare, "can_exchange", cannot)
    return request.param


@pytest.fixture
def place(world: World) -> ViewPlace:
    return begun(world)


def begun(world: World) -> ViewPlace:
    """A project, and a view in which every kind of change was made; one old file has a second name."""
    for old in (world.project, world.artoo_home):
        shutil.rmtree(old, ignore_errors=True)
    world.project.mkdir()
    fill(world.project)
    os.link(world.project / "log", world.project / "log-again")

    def changed(home: Path) -> None:
        work(home)
        (home / "project" / "log").unlink()
        (home / "project" / "log").write_text("new log\n")

    return view_of(world, changed)


def difference(world: World, place: ViewPlace) -> Difference:
    with opened(place, world.artoo_home) as view:
        return view.difference()


def apply(world: World, place: ViewPlace, paths: list[str] | None = None) -> None:
    with opened(place, world.artoo_home) as view:
        found = view.difference()
        view.apply(found, digest=found.digest, paths=paths)


def test_an_act_that_fails_anywhere_can_be_tried_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Disk full at each single change: all is as before, in the view too, and the next try succeeds."""
    fuse = 0
    for fuse in range(1, MOST):
        place = begun(world)
        before, agreed = snapshot(world.project), made_by(difference(world, place))
        with monkeypatch.context() as patched:
            struck = interrupted(patched, fuse, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), MAKING)
            with suppress(SandboxError):
                apply(world, place)
        if not struck:
            break
        recover(world.artoo_home)
        if snapshot(world.project) == before:
            assert made_by(difference(world, place)) == agreed, fuse
            apply(world, place)
        assert not place.exists, (fuse, struck)
        assert undo(world.artoo_home, "task-1").refused == ()
        assert snapshot(world.project) == before, fuse
    assert 15 < fuse < MOST - 1


@pytest.mark.parametrize("path", ["over", "new/m/n"])
def test_what_is_taken_back_after_a_crash_is_in_the_view_again(
    world: World, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A person changes one path between the crash and the next start: all else is as it was before the act, and
    still waits to be applied."""
    taken_back(world, monkeypatch, path, 5)


@pytest.mark.torture
@pytest.mark.parametrize("path", ["over", "new/m/n", "log", "link"])
def test_what_is_taken_back_after_any_crash_is_in_the_view_again(
    world: World, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """The same, at each single change on disk."""
    taken_back(world, monkeypatch, path, 1)


def taken_back(world: World, monkeypatch: pytest.MonkeyPatch, path: str, stride: int) -> None:
    times = 0
    fuse = 0
    for fuse in range(1, MOST, stride):
        place = begun(world)
        before, agreed = snapshot(world.project), paths_of(difference(world, place))
        with monkeypatch.context() as patched:
            struck = interrupted(patched, fuse, Crash(), CHANGING)
            with suppress(Crash):
                apply(world, place)
        if not struck:
            break
        mine = world.project / path
        mine.parent.mkdir(parents=True, exist_ok=True)
        mine.unlink(missing_ok=True)
        mine.write_text(MINE)
        report = recover(world.artoo_home)
        assert mine.read_text() == MINE
        if not report.undone:
            continue
        times += 1
        seen = without(snapshot(world.project), path)
        assert seen == without(before, path), fuse
        found = difference(world, place)
        left = paths_of(found)
        assert agreed - left <= {str(one) for one in (mine, *mine.parents)}, fuse
        others = [one for one in left if not one.startswith(f"{world.project}/{path.split('/')[0]}")]
        apply(world, place, others)
        assert (world.project / "tree").read_text() == "file now"
        assert (world.project / "swap" / "deep" / "s").read_text() == "s"
        assert mine.read_text() == MINE
    assert times > 1
    assert fuse < MOST - stride


def made_by(found: Difference) -> set[tuple[str, ...]]:
    """What it would make: a second name of an old file is another file's once that was taken back."""
    return {(one.path, one.kind, str(one.content_sha256), str(one.size_after)) for one in found.changes}


def paths_of(found: Difference) -> set[str]:
    return {one.path for one in found.changes}


def without(tree: Tree, path: str) -> Tree:
    return {name: entry for name, entry in tree.items() if not path.startswith(name) and name != "."}


def test_a_version_of_the_last_instant_before_a_crash_is_nobodys_before_image(
    world: World, place: ViewPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person saves right before an exchange, and the process dies right after it: theirs comes back."""

    def late(one: Place, other: Place) -> None:
        if other[1] == "over":
            (world.project / "fresh").write_text(MINE)
            (world.project / "fresh").replace(world.project / "over")
        exchange(one, other)
        if other[1] == "over":
            raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(converge, "exchange", late)
        with pytest.raises(Crash):
            apply(world, place)
    recover(world.artoo_home)
    assert (world.project / "over").read_text() == MINE
    assert (world.project / "gone").exists()


def saved_late(world: World, place: ViewPlace, monkeypatch: pytest.MonkeyPatch, *, saved: bool) -> None:
    """The process dies right after an exchange, before which somebody saved the file, if `saved`."""

    def late(one: Place, other: Place) -> None:
        if other[1] == "over" and saved:
            (world.project / "fresh").write_text(MINE)
            (world.project / "fresh").replace(world.project / "over")
        exchange(one, other)
        if other[1] == "over":
            raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(converge, "exchange", late)
        with pytest.raises(Crash):
            apply(world, place)


def test_a_version_of_the_last_instant_comes_back_also_when_another_path_was_changed_since(
    world: World, place: ViewPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lay in the view, and no start could end the act."""
    saved_late(world, place, monkeypatch, saved=True)
    (world.project / "log").unlink()
    (world.project / "log").write_text("another of mine")
    report = recover(world.artoo_home)
    assert report.undone
    assert {Path(one.path).name for one in report.conflicts} == {"over", "log"}
    assert (world.project / "over").read_text() == MINE
    assert (world.project / "log").read_text() == "another of mine"
    assert not difference(world, place).empty


def test_a_view_whose_apply_is_cut_does_not_expire(
    world: World, place: ViewPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person's file may be in it alone."""
    write_pending(place, PendingRecord(task_id="task-1", since=1.0, expires_at=2.0, warned_at=1.0))
    saved_late(world, place, monkeypatch, saved=False)
    assert expire(world.artoo_home, Keeping(), 1e6).dropped == ()
    (world.project / "log").unlink()
    (world.project / "log").write_text(MINE)
    recover(world.artoo_home)
    assert (world.project / "over").read_text() == "old over\n"
    assert len(expire(world.artoo_home, Keeping(), 1e6).dropped) == 1


def test_a_view_that_is_gone_keeps_nothing_from_being_taken_back(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, takes_trunk: bool
) -> None:
    """A person removes the view after a crash, and changes a path: the rest is as it was before the act, but for
    what had just come out of an exchange and went with the view. That is told. What is in the trunk lies elsewhere
    by then."""
    lost: list[str] = []
    for fuse in range(30, 50):
        place = begun(world)
        before = snapshot(world.project)
        with monkeypatch.context() as patched:
            interrupted(patched, fuse, Crash(), CHANGING)
            with pytest.raises(Crash):
                apply(world, place)
        shutil.rmtree(place.base)
        (world.project / "over").unlink(missing_ok=True)
        (world.project / "over").write_text(MINE)
        caplog.clear()
        assert recover(world.artoo_home).undone != ()
        told = [one.message for one in caplog.records if "went with the view" in one.message]
        assert len(told) <= 1, fuse
        lost += told
        now, was = without(snapshot(world.project), "over"), without(before, "over")
        differs = {name for name in now.keys() | was.keys() if now.get(name) != was.get(name)}
        assert differs == {name for name in differs if told and f"/{name} stays" in told[0]}, fuse
        assert len(differs) == len(told), fuse
        assert recover(world.artoo_home).undone == ()
    assert bool(lost) is not takes_trunk


def test_what_goes_becomes_the_before_image_itself(world: World, place: ViewPlace) -> None:
    """Nothing is copied: the old file is kept, and the view's own takes its place."""
    old = (world.project / "over").stat().st_ino
    new = next(place.base.rglob("over")).stat().st_ino
    apply(world, place)
    (record,) = records(world.artoo_home / "undo")
    images = {step.relative: record.image(step) for step in record.journal().steps}
    image = images["project/over"]
    assert image is not None
    assert os.stat(image).st_ino == old
    assert (world.project / "over").stat().st_ino == new


def test_the_before_images_of_many_files_come_back_from_several_directories(
    world: World, takes_trunk: bool
) -> None:
    """Nobody's number is another's, and all of them are counted."""
    for number in range(150):
        (world.project / f"f{number}").write_text(f"old {number}")
    before = snapshot(world.project)

    def rewritten(home: Path) -> None:
        for number in range(150):
            (home / "project" / f"f{number}").write_text("new")

    apply(world, view_of(world, rewritten))
    (record,) = records(world.artoo_home / "undo")
    assert len(list(record.place.glob("images/*"))) == (0 if takes_trunk else 3)
    assert bytes_kept(record) == sum(len(f"old {number}") for number in range(150))
    assert undo(world.artoo_home, "task-1").refused == ()
    assert snapshot(world.project) == before


def test_an_act_that_an_earlier_artoo_wrote_down_is_undone(
    world: World, place: ViewPlace, takes_trunk: bool
) -> None:
    """Its before-images lie in one directory."""
    if takes_trunk:
        pytest.skip("that did not do so")
    before = snapshot(world.project)
    apply(world, place)
    (record,) = records(world.artoo_home / "undo")
    kept = record.images.bytes_kept()
    flat = record.place / "before"
    flat.mkdir()
    for image in sorted(record.place.glob("images/*/*")):
        image.rename(flat / image.name)
    shutil.rmtree(record.place / "images")
    journal = record.place / "journal.json"
    written = json.loads(journal.read_text()) | {"format": 4}
    del written["taken"]
    journal.write_text(json.dumps(written))
    (again,) = records(world.artoo_home / "undo")
    assert again.images.bytes_kept() == kept
    assert undo(world.artoo_home, "task-1").refused == ()
    assert snapshot(world.project) == before
