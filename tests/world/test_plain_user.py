"""What the modes of directories keep a plain user from, and never root."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from layers import view_of
from plain_world import as_plain_user, plain_world
from sandbox_world import World

from artoo.contracts.errors import SandboxError
from artoo.world import settle, unlocked
from artoo.world.carry import OPAQUE
from artoo.world.closing import opened
from artoo.world.fold import fold
from artoo.world.scan import scan
from artoo.world.settle import is_unfinished
from artoo.world.stage import Layer, make_upper
from artoo.world.undo import undo


@pytest.fixture
def open_world() -> Iterator[World]:
    """A home of a plain user's."""
    with plain_world() as one:
        yield one


def test_a_read_only_directory_is_folded_over_what_stops_the_stack(open_world: World) -> None:
    """An attribute is set on it first, for which its own mode has to be opened."""
    world = open_world

    def act() -> None:
        above, under = world.home / "above/up", world.home / "under/up"
        for place in (above, under):
            place.mkdir(parents=True)
        (under / "d").write_text("made by an earlier command")
        (above / "d").mkdir()
        (above / "d/f").write_text("f")
        (above / "d").chmod(0o555)
        fold(above, Layer(world.project, under, under.with_name("work"), ()))
        assert (under / "d/f").read_text() == "f"
        assert stat.S_IMODE((under / "d").stat().st_mode) == 0o555
        assert os.getxattr(under / "d", OPAQUE) == b"y"

    as_plain_user(act)


def test_the_rest_can_be_applied_after_a_part_out_of_a_read_only_directory(open_world: World) -> None:
    """What was applied leaves the layer, whatever mode the task gave the directory that holds it."""
    world = open_world

    def fill(place: Path) -> None:
        (place / "d").mkdir()
        for name in ("d/f", "d/g", "other"):
            (place / name).write_text("old")

    def act() -> None:
        fill(world.project)
        (world.project / "d").chmod(0o555)

        def work(home: Path) -> None:
            (home / "project/d").chmod(0o755)
            for name in ("d/f", "d/g", "other"):
                (home / "project" / name).write_text("new, and longer")

        place = view_of(world, work)
        (place.upper("task", 0) / "project/d").chmod(0o555)
        with opened(place, world.artoo_home) as view:
            found = view.difference()
            view.apply(found, digest=found.digest, paths=[str(world.project / "d/f")])
        with opened(place, world.artoo_home) as view:
            rest = view.difference()
            assert [one.shown.rpartition("/")[2] for one in rest.effects] == ["g", "other"]
            assert view.apply(rest, digest=rest.digest).whole
        assert (world.project / "d/g").read_text() == "new, and longer"
        assert stat.S_IMODE((world.project / "d").stat().st_mode) == 0o555

    as_plain_user(act)


@pytest.mark.parametrize("mode", [0o555, 0o355])
def test_a_part_leaves_a_view_whose_root_is_closed(open_world: World, mode: int) -> None:
    """The person's home, or what the task made of it: else the apply would stay unfinished, and no undo begin."""
    world = open_world

    def act() -> None:
        world.artoo_home.mkdir(exist_ok=True)
        for name in "ab":
            (world.home / name).write_text("old")
        place = view_of(world, lambda home: [(home / name).write_text("new, and longer") for name in "ab"])
        upper = place.upper("task", 0)
        upper.chmod(mode)
        with opened(place, world.artoo_home) as view:
            found = view.difference()
            assert view.apply(found, digest=found.digest, paths=[str(world.home / "a")]).report.applied
        assert not is_unfinished(world.artoo_home, "task-1")
        assert (stat.S_IMODE(upper.stat().st_mode), (upper / "a").exists()) == (mode, False)
        assert undo(world.artoo_home, "task-1").refused == ()
        assert (world.home / "a").read_text() == "old"

    as_plain_user(act)


def test_a_directory_that_was_closed_since_the_look_is_told(open_world: World) -> None:
    """Nothing is changed, and it can be applied when the directory is open again."""
    world = open_world

    def act() -> None:
        (world.project / "d" / "e").mkdir(parents=True)
        (world.project / "d" / "e" / "f").write_text("old")
        place = view_of(world, lambda home: (home / "project/d/e/f").write_text("new"))
        for name in ("d", "d/e"):
            with opened(place, world.artoo_home) as view:
                found = view.difference()
                (world.project / name).chmod(0)
                with pytest.raises(SandboxError, match=r"Permission denied.*/d/e/f.*nothing was changed"):
                    view.apply(found, digest=found.digest)
                (world.project / name).chmod(0o700)
        with opened(place, world.artoo_home) as view:
            found = view.difference()
            assert view.apply(found, digest=found.digest).report.applied

    as_plain_user(act)


def test_an_undo_that_has_no_room_to_note_what_it_opens_says_so(
    open_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be repeated, and the directory is as it was."""
    world = open_world

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def act() -> None:
        (world.project / "d").mkdir()
        (world.project / "d" / "f").write_text("old")
        place = view_of(world, lambda home: (home / "project/d/f").write_text("new"))
        with opened(place, world.artoo_home) as view:
            found = view.difference()
            assert view.apply(found, digest=found.digest).report.applied
        (world.project / "d").chmod(0o500)
        with monkeypatch.context() as patched:
            patched.setattr(unlocked, "write_durably", full)
            with pytest.raises(SandboxError, match=r"No space left.*repeat the undo"):
                undo(world.artoo_home, "task-1")
        assert (world.project / "d" / "f").read_text() == "new"
        assert undo(world.artoo_home, "task-1").refused == ()
        assert (world.project / "d" / "f").read_text() == "old"
        assert stat.S_IMODE((world.project / "d").stat().st_mode) == 0o500

    as_plain_user(act)


def test_space_is_asked_for_only_where_it_is_missing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that cannot be put in order says what is in the way."""
    place = view_of(world, lambda home: [(home / "project" / name).write_text(name) for name in "ab"])

    def refused(number: int) -> Callable[..., None]:
        def refuse(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        return refuse

    monkeypatch.setattr(settle, "take_out", refused(errno.EACCES))
    with opened(place, world.artoo_home) as view:
        found = view.difference()
        view.apply(found, digest=found.digest, paths=[str(world.project / "a")])
    with pytest.raises(SandboxError, match=r"Permission denied.*mend that first"):
        undo(world.artoo_home, "task-1")
    monkeypatch.setattr(settle, "take_out", refused(errno.EDQUOT))
    with pytest.raises(SandboxError, match="free space"):
        undo(world.artoo_home, "task-1")


def test_an_owner_that_cannot_be_given_away_is_no_change(open_world: World) -> None:
    """A team's directory belongs to somebody else, and so does not what stands for it in a view."""
    team = open_world.home / "team"
    team.mkdir()
    team.chmod(0o777)
    os.chown(team, 0, 0)

    def act() -> None:
        layer = Layer(team, open_world.home / "layer/up", open_world.home / "layer/work", ())
        layer.upper.parent.mkdir()
        make_upper(layer.upper, team)
        assert layer.upper.stat().st_uid != team.stat().st_uid
        assert scan((layer,), 10) == []

    as_plain_user(act)


@pytest.mark.parametrize("mode", [0o600, 0o000])
@pytest.mark.parametrize("there", [False, True])
def test_a_directory_that_a_part_closed_does_not_keep_its_apply_from_its_end(
    open_world: World, mode: int, *, there: bool
) -> None:
    """What is in it cannot be looked at any more: it leaves the view all the same, and can be undone."""
    world = open_world
    directory = world.project / "d"

    def work(home: Path) -> None:
        (home / "project/d").mkdir(exist_ok=True)
        (home / "project/d/f").write_text("new")
        (home / "project/d/gone").unlink(missing_ok=True)
        (home / "project/other").write_text("waits")

    def act() -> None:
        if there:
            directory.mkdir()
            for name in ("f", "gone"):
                (directory / name).write_text("old")
        place = view_of(world, work)
        (place.upper("task", 0) / "project/d").chmod(mode)
        with opened(place, world.artoo_home) as view:
            found = view.difference()
            view.apply(found, digest=found.digest, paths=[str(directory)])
        assert not is_unfinished(world.artoo_home, "task-1")
        assert stat.S_IMODE(directory.stat().st_mode) == mode
        assert undo(world.artoo_home, "task-1").refused == ()
        names = sorted(os.listdir(directory)) if directory.exists() else []
        assert names == (["f", "gone"] if there else [])

    as_plain_user(act)
