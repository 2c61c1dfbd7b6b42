"""An act that takes the trunk of its view with it: when it does, what it keeps, where the trunk is afterwards."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from layers import view_of
from plain_world import as_plain_user, plain_world
from sandbox_snapshots import snapshot
from sandbox_world import World
from test_lent import Crash, apply, difference

from artoo.contracts.errors import SandboxError
from artoo.world import converge, prepare, taken, transaction
from artoo.world.difference import difference_of
from artoo.world.exchange import Place, can_exchange, exchange, put_new
from artoo.world.journal import Record, records
from artoo.world.mounts import Mount, MountTable
from artoo.world.recover import recover
from artoo.world.undo import undo
from artoo.world.view_place import ViewPlace, Views

LONGEST = os.pathconf("/", "PC_PATH_MAX") - 1
"""Bytes of a path."""


def changed(project: Path) -> None:
    (project / "a").write_text("new a\n")
    (project / "b").unlink()
    (project / "d" / "c").write_text("new c\n")
    (project / "n").mkdir()
    (project / "n" / "n").write_text("n\n")


def filled(world: World) -> None:
    (world.project / "d").mkdir(parents=True)
    for name in ("a", "b", "d/c", "d/same"):
        (world.project / name).write_text(f"old {name}\n")


def begun(world: World, change: Callable[[Path], object] = changed) -> ViewPlace:
    return view_of(world, lambda home: change(home / "project"))


def the_record(world: World) -> Record:
    (record,) = records(world.artoo_home / "undo")
    return record


def undone(world: World) -> None:
    assert undo(world.artoo_home, "task-1").refused == ()


def dies_before_the_end(world: World, place: ViewPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything took effect, and nobody has noted it."""
    with monkeypatch.context() as patched:
        patched.setattr(Record, "mark_done", cut)
        with pytest.raises(Crash):
            apply(world, place)


# --- what is kept -----------------------------------------------------------------------------------------------


def test_of_the_trunk_the_before_images_are_kept_and_nothing_else(world: World) -> None:
    """Neither a cache, which takes no effect, nor a file that the task wrote anew as it was."""
    filled(world)
    before = snapshot(world.project)

    def change(project: Path) -> None:
        changed(project)
        (project / ".pytest_cache").mkdir()
        (project / ".pytest_cache" / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")

    place = begun(world, change)
    same = place.upper("task", 0) / "project" / "d" / "same"
    shutil.copy2(world.project / "d" / "same", same)
    apply(world, place)
    record = the_record(world)
    kept = {path.relative_to(record.layer): path.read_text() for path in record.layer.rglob("*") if path.is_file()}
    assert kept == {Path("0/up/project/a"): "old a\n", Path("0/up/project/d/c"): "old d/c\n"}
    assert taken.bytes_kept(record) == sum(len(f"old {name}\n") for name in ("a", "d/c", "b"))
    assert not (world.project / ".pytest_cache").exists()
    undone(world)
    assert snapshot(world.project) == before
    assert not record.place.exists()


def long_name(world: World, bytes_in_view: int) -> str:
    """Of a file of the project whose path in the view has so many bytes."""
    room = bytes_in_view - len(os.fspath(Views(world.artoo_home).place("task-1").upper("task", 0) / "project"))
    directories, rest = divmod(room - 2, 201)
    return "/".join([*["d" * 200] * directories, "f" * (rest + 1)])


def test_what_has_no_short_path_goes_all_the_same(world: World) -> None:
    """In the record, whose own path is longer: what took no effect goes, and what is kept can be counted."""
    filled(world)
    same = long_name(world, LONGEST)
    (world.project / same).parent.mkdir(parents=True)
    (world.project / same).write_text("old")
    place = begun(world)
    upper = place.upper("task", 0) / "project" / same
    upper.parent.mkdir(parents=True)
    shutil.copy2(world.project / same, upper)
    apply(world, place)
    record = the_record(world)
    assert taken.bytes_kept(record) == sum(len(f"old {name}\n") for name in ("a", "d/c", "b"))
    assert {child.name for child in (record.layer / "0/up/project").iterdir()} == {"a", "d"}


@pytest.mark.parametrize("whole", [True, False])
def test_what_has_no_short_path_takes_effect_all_the_same(
    world: World, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in the record nor in the view. An act that met it could not be ended, nor taken back."""
    filled(world)
    known, new = long_name(world, LONGEST), long_name(world, LONGEST + 20)
    write_below(world.project, known, "old")
    before = snapshot(world.project)
    place = begun(world, lambda project: (project / known).write_text("newer"))
    write_below(place.upper("task", 0) / "project", new, "new")
    with monkeypatch.context() as patched:
        patched.setattr(Record, "mark_done", cut)
        with pytest.raises(Crash):
            apply(world, place, None if whole else [f"{world.project}/{known[:200]}"])
    recover(world.artoo_home)
    assert (world.project / known).read_text() == "newer"
    assert (world.project / new).read_text() == "new"
    undone(world)
    assert snapshot(world.project) == before


def write_below(top: Path, name: str, text: str) -> None:
    """A file at a path of any length."""
    *directories, last = name.split("/")
    here = os.open(top, os.O_RDONLY)
    for directory in directories:
        with suppress(FileExistsError):
            os.mkdir(directory, dir_fd=here)
        inner = os.open(directory, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    descriptor = os.open(last, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=here)
    os.write(descriptor, text.encode())
    os.close(descriptor)
    os.close(here)


def test_what_is_undone_in_part_keeps_the_other_before_images(world: World) -> None:
    filled(world)
    apply(world, begun(world))
    (world.project / "a").write_text("mine since\n")
    assert [one.path for one in undo(world.artoo_home, "task-1").refused] == [f"{world.project}/a"]
    assert (world.project / "d" / "c").read_text() == "old d/c\n"
    (world.project / "a").unlink()
    shutil.copy2(the_record(world).layer / "0/up/project/a", world.home / "looked at")
    assert (world.home / "looked at").read_text() == "old a\n"


def test_an_act_is_undone_where_artoo_s_home_lies_elsewhere_now(world: World) -> None:
    """Where a before-image lies is told from the record on."""
    filled(world)
    before = snapshot(world.project)
    apply(world, begun(world))
    other = world.artoo_home.rename(world.home / "moved")
    assert undo(other, "task-1").refused == ()
    assert snapshot(world.project) == before


def test_a_trunk_goes_back_to_where_its_view_lies_now(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Artoo's home was moved after a crash, and the person changed a path: the rest waits in the view again."""
    filled(world)
    place = begun(world)
    dies_before_the_end(world, place, monkeypatch)
    (world.project / "a").write_text("mine, and longer\n")
    other = world.artoo_home.rename(world.home / "moved")
    assert recover(other).undone != ()
    assert (world.project / "d" / "c").read_text() == "old d/c\n"
    (trunk,) = other.glob("views/*/layers/task")
    assert (trunk / "0/up/project/d/c").read_text() == "new c\n"


# --- when it is taken -------------------------------------------------------------------------------------------


def test_a_part_leaves_the_trunk_in_its_view(world: World) -> None:
    filled(world)
    place = begun(world)
    apply(world, place, [f"{world.project}/a"])
    assert not the_record(world).layer.exists()
    assert {effect.shown for effect in difference(world, place).effects} == {
        f"{world.project}/{name}" for name in ("b", "d/c", "n", "n/n")
    }


def test_over_other_mounts_files_go_one_by_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a directory of the project on which something is mounted no name can be exchanged with the trunk's."""
    filled(world)
    before = snapshot(world.project)
    real = MountTable.read()
    inner = Mount(10**6, os.fsencode(world.project / "d"), "ext4")
    monkeypatch.setattr("artoo.world.prepare.MountTable.read", lambda: MountTable((*real.mounts, inner)))
    apply(world, begun(world))
    assert not the_record(world).layer.exists()
    undone(world)
    assert snapshot(world.project) == before


def test_a_plain_user_whose_task_closed_a_directory_has_its_files_go_one_by_one() -> None:
    with plain_world() as world:

        def act() -> None:
            filled(world)
            before, place = snapshot(world.project), begun(world)
            (place.upper("task", 0) / "project" / "n").chmod(0o500)
            apply(world, place)
            assert not the_record(world).layer.exists()
            assert (world.project / "n").stat().st_mode & 0o777 == 0o500
            undone(world)
            assert snapshot(world.project) == before

        as_plain_user(act)


def test_a_plain_user_has_the_trunk_taken() -> None:
    with plain_world() as world:

        def act() -> None:
            filled(world)
            before = snapshot(world.project)
            apply(world, begun(world))
            assert the_record(world).layer.exists()
            undone(world)
            assert snapshot(world.project) == before

        as_plain_user(act)


def test_it_is_tried_whether_names_can_be_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_exchange(tmp_path)

    def refused(*_: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr("artoo.world.exchange.exchange", refused)
    assert not can_exchange(tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- where it is afterwards -------------------------------------------------------------------------------------


def test_a_trunk_that_cannot_be_taken_stays_and_nothing_was_changed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(world)
    before, place = snapshot(world.project), begun(world)
    agreed = difference(world, place).digest

    def refused(*_: object) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patched:
        patched.setattr(transaction, "take", refused)
        with pytest.raises(SandboxError, match=r"all was put back$"):
            apply(world, place)
    assert snapshot(world.project) == before
    assert difference(world, place).digest == agreed
    assert list(records(world.artoo_home / "undo")) == []
    apply(world, place)
    assert not place.exists


def test_what_somebody_changed_while_it_was_taken_back_is_no_change_of_the_task(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old version of a file that the person has replaced meanwhile does not come into the view."""
    filled(world)
    place = begun(world)
    dies_before_the_end(world, place, monkeypatch)
    (world.project / "mine").write_text("mine\n")
    (world.project / "mine").rename(world.project / "a")
    assert [one.path for one in recover(world.artoo_home).conflicts] == [f"{world.project}/a"]
    assert (world.project / "a").read_text() == "mine\n"
    assert (world.project / "d" / "c").read_text() == "old d/c\n"
    found = difference(world, place)
    assert {effect.shown for effect in found.effects} == {
        f"{world.project}/{name}" for name in ("b", "d/c", "n", "n/n")
    }
    assert found.conflicts == ()
    assert list(records(world.artoo_home / "undo")) == []


def test_a_view_that_somebody_made_anew_keeps_its_own_trunk(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    filled(world)
    before, place = snapshot(world.project), begun(world)
    dies_before_the_end(world, place, monkeypatch)
    shutil.rmtree(place.base)
    (place.upper("task", 0)).mkdir(parents=True)
    (place.upper("task", 0) / "newer").write_text("newer\n")
    (world.project / "n" / "n").write_text("the person's, longer\n")
    assert recover(world.artoo_home).undone != ()
    assert any("has removed the view" in one.message for one in caplog.records)
    now = snapshot(world.project)
    assert {name: entry for name, entry in now.items() if name in before and name != "."} == {
        name: entry for name, entry in before.items() if name != "."
    }
    assert not list((world.artoo_home / "undo").rglob("layer"))


@pytest.mark.parametrize("whole", [True, False])
def test_of_a_view_that_somebody_made_anew_nothing_takes_effect(
    world: World, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash came before the first file went: what lies there now was never agreed to."""
    filled(world)
    before = snapshot(world.project)
    place = begun(world, lambda project: (project / "a").write_text("new a\n"))

    def exchanges(_: Path) -> bool:
        return whole

    monkeypatch.setattr(prepare, "can_exchange", exchanges)
    with monkeypatch.context() as patched:
        patched.setattr(transaction, "take", cut)
        with pytest.raises(Crash):
            apply(world, place)
    shutil.rmtree(place.base)
    begun(world, lambda project: [(project / name).write_text(f"other {name}") for name in ("a", "newer")])
    agreed = difference_of(place, world.artoo_home).digest
    recover(world.artoo_home)
    assert snapshot(world.project) == before
    assert difference_of(place, world.artoo_home).digest == agreed
    assert difference(world, place).digest == agreed


def test_names_that_the_system_brings_not_so_far_go_by_a_copy(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one mount, too: under other quotas, or another key. All of it still takes effect."""
    filled(world)
    before, place = snapshot(world.project), begun(world)

    def near_only(real: Callable[[Place, Place], None]) -> Callable[[Place, Place], None]:
        def rename(one: Place, other: Place) -> None:
            if os.fstat(one[0]).st_ino != os.fstat(other[0]).st_ino:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            real(one, other)

        return rename

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(converge, "exchange", near_only(exchange))
    monkeypatch.setattr(converge, "put_new", near_only(put_new))
    monkeypatch.setattr(os, "link", refused)
    apply(world, place)
    assert (world.project / "a").read_text() == "new a\n"
    assert not place.exists
    undone(world)
    assert snapshot(world.project) == before


def cut(*_: object) -> None:
    raise Crash


# --- contents that were brought to another file system ----------------------------------------------------------


def brought(world: World, monkeypatch: pytest.MonkeyPatch) -> ViewPlace:
    """A view whose contents land in the root before the act."""
    filled(world)

    def never(*_: object) -> bool:
        return False

    monkeypatch.setattr(prepare.Preparation, "_same_mount", never)
    return begun(world)


def landings(world: World) -> list[Path]:
    return list(world.home.rglob(".artoo-landing-*"))


def test_where_contents_landed_goes_after_a_crash_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start removes it, of an act that had just taken effect."""
    place = brought(world, monkeypatch)
    real = Record.mark_done

    def done_and_dead(record: Record) -> None:
        real(record)
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(Record, "mark_done", done_and_dead)
        with pytest.raises(Crash):
            apply(world, place)
    assert landings(world)
    recover(world.artoo_home)
    assert landings(world) == []
    assert (world.project / "a").read_text() == "new a\n"
    undone(world)


def test_where_contents_landed_fails_no_act_that_took_effect(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be removed there, for a program has put something in it, goes when it can."""
    place = brought(world, monkeypatch)
    real = Record.mark_done

    def meddled(record: Record) -> None:
        real(record)
        (landings(world)[0] / "d").mkdir()

    with monkeypatch.context() as patched:
        patched.setattr(Record, "mark_done", meddled)
        apply(world, place)
    assert (world.project / "a").read_text() == "new a\n"
    (landings(world)[0] / "d").rmdir()
    recover(world.artoo_home)
    assert landings(world) == []
    undone(world)
