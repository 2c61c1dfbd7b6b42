"""What stands in the way of putting back is left and named; the rest comes back, and what was left can later."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from apply_victim import burn
from layers import view_of
from sandbox_snapshots import snapshot
from sandbox_world import World

from artoo.contracts.errors import SandboxError
from artoo.world import converge, journal, nodes, transaction
from artoo.world import undo as undo_module
from artoo.world.closing import opened
from artoo.world.journal import Record, records
from artoo.world.pending import settled_records
from artoo.world.recover import recover
from artoo.world.undo import Keep, damaged, undo, undoable
from artoo.world.view_place import Views

TASK = "task-1"


def fill(project: Path) -> None:
    """The tree before."""
    for name in "abz":
        (project / name).write_text("old\n")
    (project / "d").mkdir()
    (project / "d" / "x").write_text("x\n")


def settle(world: World, change: Callable[[Path], object], task: str = TASK) -> None:
    """A task's changes below the project take effect."""
    place = view_of(world, lambda home: change(home / "project"), task)
    with opened(place, world.artoo_home) as view:
        found = view.difference()
        assert view.apply(found, digest=found.digest).whole


def remove_and_edit(project: Path) -> None:
    """A directory goes, and files on both sides of it are edited."""
    shutil.rmtree(project / "d")
    for name in "abz":
        (project / name).write_text("new\n")


def refused(world: World) -> dict[str, str]:
    found = undo(world.artoo_home, TASK).refused
    return {one.path.removeprefix(f"{world.project}/"): one.reason for one in found}


def texts(world: World) -> list[str]:
    return [(world.project / name).read_text() for name in "abz"]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_has_no_directory_to_come_back_to_is_left(world: World, kind: str) -> None:
    """The name of a removed directory is in use: it and what it held are named, the rest comes back; they come back
    when the name is free."""
    fill(world.project)
    before = snapshot(world.project)
    settle(world, remove_and_edit)
    other = world.home / "other"
    other.mkdir()
    if kind == "file":
        (world.project / "d").write_text("mine\n")
    else:
        (world.project / "d").symlink_to(other)
    assert set(refused(world)) == {"d", "d/x"}
    assert texts(world) == ["old\n"] * 3
    assert set(refused(world)) == {"d", "d/x"}
    assert list(other.iterdir()) == []
    (world.project / "d").unlink()
    assert refused(world) == {}
    assert snapshot(world.project) == before


def test_a_directory_that_became_an_edited_file_is_left(world: World) -> None:
    """The person's version of the file that stands for a directory stays, and so does what the directory held."""
    fill(world.project)

    def change(project: Path) -> None:
        remove_and_edit(project)
        (project / "d").write_text("the task's\n")

    settle(world, change)
    (world.project / "d").write_text("the person's version\n")
    assert set(refused(world)) == {"d", "d/x"}
    assert texts(world) == ["old\n"] * 3
    assert (world.project / "d").read_text() == "the person's version\n"


def test_what_was_left_is_named_alone_the_next_time(world: World) -> None:
    """What was put back is of the act no more: a later change of it is nobody's business."""
    fill(world.project)
    settle(world, remove_and_edit)
    (world.project / "b").write_text("the person's\n")
    assert set(refused(world)) == {"b"}
    (world.project / "a").write_text("later\n")
    shutil.rmtree(world.project / "d")
    assert undo(world.artoo_home, TASK).restored == ()
    assert set(refused(world)) == {"b"}
    assert not (world.project / "d").exists()


def test_a_full_disk_in_the_middle_of_an_undo(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next undo goes on where it stopped, and names all of it as put back."""
    fill(world.project)
    before = snapshot(world.project)

    def change(project: Path) -> None:
        remove_and_edit(project)
        (project / "d").write_text("file now")

    settle(world, change)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for function in ("put_new", "_finish"):  # between two kinds of thing; made and not finished
        with monkeypatch.context() as patched:
            patched.setattr(converge, function, full)
            with pytest.raises(SandboxError, match="No space left"):
                undo(world.artoo_home, TASK)
            assert recover(world.artoo_home).finished == ()
    report = undo(world.artoo_home, TASK)
    assert report.refused == ()
    assert len(report.restored) == 5
    assert snapshot(world.project) == before


def test_a_start_finishes_a_cut_undo_and_says_so(world: World) -> None:
    """It is on record as undone, as if it had come to its end by itself."""
    fill(world.project)
    before = snapshot(world.project)
    settle(world, remove_and_edit)
    fuse = 0
    while not next(records(world.artoo_home / "undo")).is_undoing:
        fuse += 1
        child = os.fork()
        if child == 0:
            burn(fuse)
            undo(world.artoo_home, TASK)
            os._exit(0)
        os.waitpid(child, 0)
    assert len(recover(world.artoo_home).undone) == 1
    assert snapshot(world.project) == before
    (line,) = settled_records(world.artoo_home / "views")
    assert (line.task_id, line.what, line.count, line.left) == (TASK, "undone", 5, 0)


def test_what_is_behind_a_link_now_is_left(world: World) -> None:
    """Its directory was moved away and a link stands there: what the task made in it goes later."""
    (world.project / "d").mkdir()
    settle(world, lambda project: (project / "d" / "n").write_text("n"))
    (world.project / "d").rename(world.project / "e")
    (world.project / "d").symlink_to("e")
    assert refused(world) == {"d/n": "a directory above it is a link now"}
    (world.project / "d").unlink()
    (world.project / "e").rename(world.project / "d")
    assert refused(world) == {}
    assert list((world.project / "d").iterdir()) == []


def test_who_undoes_at_the_same_time_finds_nothing_damaged(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has put it back since a look: then nothing is kept, or listed, and no journal is broken."""
    fill(world.project)
    before = snapshot(world.project)
    settle(world, remove_and_edit)
    real = Record.journal

    def put_back_meanwhile(record: Record) -> journal.Journal:
        with monkeypatch.context() as patched:
            patched.setattr(Record, "journal", real)
            assert undo(world.artoo_home, TASK).refused == ()
        return real(record)

    with monkeypatch.context() as patched:
        patched.setattr(Record, "journal", put_back_meanwhile)
        assert undoable(world.artoo_home, Keep()) == ()
    settle(world, remove_and_edit)
    with monkeypatch.context() as patched:
        patched.setattr(Record, "journal", put_back_meanwhile)
        assert damaged(world.artoo_home) == ()
    settle(world, remove_and_edit)

    def wait(_: object) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(undo_module, "wait_for_git", list)
            assert undo(world.artoo_home, TASK).refused == ()

    monkeypatch.setattr(undo_module, "wait_for_git", wait)
    with pytest.raises(SandboxError, match="nothing is kept"):
        undo(world.artoo_home, TASK)
    assert snapshot(world.project) == before


# --- what the person did to the metadata -----------------------------------------------------------------------


@pytest.mark.parametrize("changed", [False, True])
def test_what_was_behind_a_link_of_the_tasks_own_comes_back(world: World, changed: bool) -> None:
    """The link goes, so nothing is behind it: at once, and not at a second undo. One of the person's stays."""
    fill(world.project)
    (world.project / "d").rename(world.project / "d\xe9\n")
    before = snapshot(world.project)

    def moved(project: Path) -> None:
        (project / "d\xe9\n").rename(project / "there")
        (project / "d\xe9\n").symlink_to("there")

    settle(world, moved)
    if changed:
        (world.project / "d\xe9\n").unlink()
        (world.project / "d\xe9\n").symlink_to("a")
        assert set(refused(world)) == {"d\xe9\\n", "d\xe9\\n/x"}
        assert os.readlink(world.project / "d\xe9\n") == "a"
        return
    assert refused(world) == {}
    assert snapshot(world.project) == before


def test_the_persons_mode_and_attributes_are_no_ones_to_take_back(world: World) -> None:
    """A file that the task edited and the person closed and labelled since stays as it is."""
    (world.project / "f").write_text("old\n")
    settle(world, lambda project: (project / "f").write_text("new\n"))
    (world.project / "f").chmod(0o600)
    os.setxattr(world.project / "f", "user.mine", b"1")
    assert refused(world) == {"f": "its mode, owner or attributes were changed since"}
    assert stat.S_IMODE((world.project / "f").stat().st_mode) == 0o600
    assert os.listxattr(world.project / "f") == ["user.mine"]


def test_an_attribute_that_only_an_earlier_version_wrote_down_was_not_changed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file server's list is of no state any more: what is on record of it stops no undo, and is no conflict."""
    (world.project / "f").write_text("old\n")
    real = nodes._all_xattrs  # pyright: ignore[reportPrivateUsage]

    def with_list(place: int | str) -> list[tuple[str, bytes]]:
        return [*real(place), ("system.nfs4_acl", b"list")]

    def kept(name: str) -> bool:
        return not name.startswith(nodes.OVERLAY_PREFIXES)

    with monkeypatch.context() as earlier:
        earlier.setattr(nodes, "_all_xattrs", with_list)
        for module in (nodes, journal):
            earlier.setattr(module, "is_kept", kept)
        settle(world, lambda project: (project / "f").write_text("new\n"))
        waiting = view_of(world, lambda home: (home / "project/f").write_text("newer\n"), "task-2")
    assert "system.nfs4_acl" in waiting.base_file().read_text()
    os.utime(world.project / "f")
    with opened(waiting, world.artoo_home) as view:
        found = view.difference()
        assert ([one.relative for one in found.effects], found.conflicts) == ([b"project/f"], ())
    os.utime(world.project / "f")
    assert refused(world) == {}
    assert (world.project / "f").read_text() == "old\n"


def test_a_newer_content_keeps_its_time(world: World) -> None:
    """Undoing a mode leaves the time of what the person has saved since; of an old content it is set back."""
    for name in ("f", "g"):
        (world.project / name).write_text("old\n")
        os.utime(world.project / name, (10**9, 10**9))

    def change(project: Path) -> None:
        for name in ("f", "g"):
            (project / name).chmod(0o755)
            os.utime(project / name, (2 * 10**9, 2 * 10**9))

    settle(world, change)
    (world.project / "f").write_text("NEW\n")
    saved = (world.project / "f").stat().st_mtime
    assert refused(world) == {}
    assert [stat.S_IMODE((world.project / name).stat().st_mode) for name in ("f", "g")] == [0o644, 0o644]
    assert [(world.project / name).stat().st_mtime for name in ("f", "g")] == [saved, 10**9]


@pytest.mark.parametrize(("target", "left"), [("b", []), ("a", ["c"])])
def test_a_link_that_was_made_anew_counts_by_its_target(world: World, target: str, left: list[str]) -> None:
    """So comes one back that an undo of a later act copied from another file system."""
    fill(world.project)
    settle(world, lambda project: (project / "c").symlink_to("b"))
    (world.project / "c").unlink()
    (world.project / "c").symlink_to(target)
    assert list(refused(world)) == left
    assert (world.project / "c").is_symlink() is bool(left)


# --- a crash, and the person after it --------------------------------------------------------------------------


def cut(world: World, until: Callable[[], bool]) -> None:
    """An apply that is killed as soon as `until`."""
    for fuse in range(1, 200):
        shutil.rmtree(world.artoo_home, ignore_errors=True)
        shutil.rmtree(world.project)
        world.project.mkdir()
        fill(world.project)
        place = view_of(world, lambda home: remove_and_edit(home / "project"))
        child = os.fork()
        if child == 0:
            with opened(place, world.artoo_home) as view:
                found = view.difference()
                burn(fuse)
                view.apply(found, digest=found.digest)
            os._exit(0)
        os.waitpid(child, 0)
        if until():
            return
    pytest.fail("it was never in that state")


def test_a_new_file_after_a_crash_stops_nothing(world: World) -> None:
    """The name of a directory that a cut act removed is in use: the file stays, the rest is taken back, and what
    the directory held is kept until its place is free."""
    cut(world, lambda: not (world.project / "d").exists())
    (world.project / "d").write_text("the person's\n")
    report = recover(world.artoo_home)
    assert len(report.undone) == 1
    assert [one.path.removeprefix(f"{world.project}/") for one in report.conflicts] == ["d", "d/x"]
    assert texts(world) == ["old\n"] * 3
    assert (world.project / "d").read_text() == "the person's\n"
    assert Views(world.artoo_home).find(TASK) is not None, "it did not take effect: it waits as before"
    assert recover(world.artoo_home).undone == ()
    assert set(refused(world)) == {"d", "d/x"}
    (world.project / "d").unlink()
    assert refused(world) == {}
    assert (world.project / "d" / "x").read_text() == "x\n"


def test_an_act_that_cannot_be_recovered_concerns_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Other tasks' cut acts are recovered and their changes settled; it is tried again at the next start, which
    only takes it back, as that had begun."""
    cut(world, lambda: not (world.project / "d").exists())
    place = view_of(world, lambda home: (home / "project" / "new").write_text("new"), "other")

    def broken(*_: object, **__: object) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patched:
        for module in ("recover", "transaction"):
            patched.setattr(f"artoo.world.{module}.converge", broken)
        assert recover(world.artoo_home).finished == ()
    assert len(caplog.records) == 1
    with opened(place, world.artoo_home) as view:
        found = view.difference()
        assert view.apply(found, digest=found.digest).whole
    assert recover(world.artoo_home).undone != ()
    assert texts(world) == ["old\n"] * 3


def test_a_view_that_cannot_be_read_keeps_no_start_from_its_end(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told by its task, and the views after it are put in order all the same."""
    fill(world.project)
    broken = view_of(world, lambda home: (home / "project" / "new").write_text("new"), "a broken one")
    shutil.rmtree(broken.base / "layers")
    (broken.base / "layers").write_text("")
    cut_while_made = Views(world.artoo_home).place("later")
    cut_while_made.base.mkdir()
    recover(world.artoo_home)
    assert any("a broken one" in one.message for one in caplog.records)
    assert not cut_while_made.base.exists()
    assert broken.exists


# --- the order of acts -----------------------------------------------------------------------------------------


def test_a_clock_that_was_set_back_changes_no_order(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are undone newest first, whatever the clock said when they were applied."""
    fill(world.project)
    settle(world, lambda project: (project / "a").write_text("one\n"))
    real = time.time_ns
    with monkeypatch.context() as patched:
        patched.setattr(transaction.time, "time_ns", lambda: real() - 3600 * 10**9)
        settle(world, lambda project: (project / "a").write_text("two\n"))
    assert refused(world) == {}
    assert (world.project / "a").read_text() == "old\n"


def test_a_part_that_was_put_back_is_told(world: World) -> None:
    """Of two acts on a file only the later could be taken back: the report says that the file was changed."""
    fill(world.project)
    settle(world, lambda project: (project / "a").write_text("one\n"))
    settle(world, lambda project: (project / "a").write_text("two\n"))
    first = next(records(world.artoo_home / "undo"))
    for step in first.journal().steps:
        if image := first.image(step):
            Path(image).unlink()
    assert refused(world) == {"a": "only its last change was put back: its old content is no longer kept"}
    assert (world.project / "a").read_text() == "one\n"
