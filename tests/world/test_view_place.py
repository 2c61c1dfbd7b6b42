"""The record of a view on disk."""

from __future__ import annotations

import errno
import os
import threading
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from sandbox_world import World

from artoo.contracts.errors import SandboxError
from artoo.world import view_state
from artoo.world.base import Base, append_base, read_base
from artoo.world.closing import opened
from artoo.world.journal import StateRecord
from artoo.world.nodes import state_of
from artoo.world.stage import make_upper
from artoo.world.unheld import unheld
from artoo.world.view_place import ViewInUse, ViewKind, Views
from artoo.world.view_state import ViewState


def a_base(path: Path) -> Base:
    was = StateRecord.of(state_of(path.lstat()))
    assert was is not None
    return Base(path=str(path), was=was, changed_ns=1, sha256="00")


def test_a_view_is_found_by_a_later_process(world: World) -> None:
    """What one process made, another finds, with roots and kind; names that are no file names are no trouble."""
    views = Views(world.artoo_home)
    place = views.place("../task 1")
    assert views.find("../task 1") is None
    assert not world.artoo_home.exists()
    place.make(ViewKind.OVERLAY, world.roots, (world.home,))
    place.upper("task", 0).mkdir(parents=True)
    found = Views(world.artoo_home).find("../task 1")
    assert found is not None
    assert found.task_id == "../task 1"
    assert found.record().roots == world.roots
    assert [layer.root for layer in found.trunk()] == [world.home]
    assert [one.task_id for one in views.listed()] == ["../task 1"]
    found.remove()
    assert views.listed() == ()


def test_one_process_at_a_time(world: World) -> None:
    """A view that is held is refused to others with the reason."""
    place = Views(world.artoo_home).place("t")
    with place.locked(), pytest.raises(SandboxError, match="another process"), place.locked():
        pass
    with place.locked():
        pass


def test_whoever_works_waits_for_one_who_looks(world: World) -> None:
    """A look at a view is short: it does not keep its task from settling."""
    place = Views(world.artoo_home).place("t")
    looking = ExitStack()
    looking.enter_context(place.locked())
    threading.Timer(0.2, looking.close).start()
    with place.locked(patience=60):
        pass


def test_a_lock_goes_with_its_view(world: World) -> None:
    """Whoever waited while the view was forgotten gets the lock of the new one, not of what is gone."""
    place = Views(world.artoo_home).place("t")
    held = place.lock()
    waiting = threading.Timer(0.2, lambda: (place.remove(), os.close(held)))
    waiting.start()
    with place.locked(patience=60):
        waiting.join()
        with pytest.raises(SandboxError, match="another process"), place.locked():
            pass


def test_a_damaged_record_is_named(world: World) -> None:
    """A record that cannot be read is an error that names the file."""
    place = Views(world.artoo_home).place("t")
    place.base.mkdir(parents=True)
    (place.base / "view.json").write_text("{")
    with pytest.raises(SandboxError, match=r"view\.json"):
        place.record()


def test_base_keeps_the_first(tmp_path: Path) -> None:
    """The first line of a path counts, and a line that a crash cut is no line, also for the next append."""
    file, thing = tmp_path / "base.jsonl", tmp_path / "thing"
    thing.write_text("x")
    first = a_base(thing)
    append_base(file, [first])
    append_base(file, [first.model_copy(update={"sha256": "11"})])
    with file.open("ab") as cut:
        cut.write(b'{"path": "/cu')
    assert read_base(file) == {str(thing): first}
    other = first.model_copy(update={"path": "/other"})
    append_base(file, [other])
    assert read_base(file) == {str(thing): first, "/other": other}


def test_a_layer_is_there_with_all_that_its_disk_can_hold(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is none that cannot hold an attribute, and a note that it cut is none: it is made later."""
    try:
        os.setxattr(world.home, "user.note", b"x")
    except OSError:
        pytest.skip("the file system of the temporary directory has no user attributes")
    upper = tmp_path / "layer" / "up"
    upper.parent.mkdir()
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def refused(*_: object) -> None:
        raise full

    def no_blocks(_: object) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=0)

    with monkeypatch.context() as patched:
        patched.setattr(os, "setxattr", refused)
        with monkeypatch.context() as no_room, pytest.raises(OSError, match="No space left"):
            no_room.setattr(os, "statvfs", no_blocks)
            make_upper(upper, world.home)
        assert not upper.exists()
        with monkeypatch.context() as no_room, pytest.raises(OSError, match="No space left"):
            no_room.setattr(os, "fsync", refused)  # the disk is full when the note is written
            make_upper(upper, world.home)
        assert not upper.exists() and unheld(upper) == frozenset()
        make_upper(upper, world.home)  # there is room, and the value does not fit, as ext4 says it
        assert (os.listxattr(upper), unheld(upper)) == ([], {"user.note"})
        upper.rmdir()
    make_upper(upper, world.home)
    assert (os.listxattr(upper), unheld(upper)) == (["user.note"], frozenset())
    assert os.listdir(upper.parent) == ["up"]


@pytest.mark.parametrize("content", [b"", b"null", b'["user'])
def test_a_damaged_note_of_a_layer_is_named(tmp_path: Path, content: bytes) -> None:
    """It decides what is a removal: nothing is guessed."""
    (tmp_path / "unheld").write_bytes(content)
    with pytest.raises(SandboxError, match=r"unheld cannot be read"):
        unheld(tmp_path / "up")


@pytest.fixture
def state(world: World) -> ViewState:
    place = Views(world.artoo_home).place("task-1")
    return ViewState(place, world.roots, ViewKind.OVERLAY, lambda: (world.home,), lambda _: None)


def test_what_a_cut_removal_left_is_not_in_the_next_view(world: World, state: ViewState) -> None:
    """A person discards a view, and the process dies: a task that goes on has nothing of it."""
    upper = state.place.upper("task", 0)
    upper.mkdir(parents=True)
    (upper / "discarded").touch()
    state.held()
    state.close()
    with opened(state.place, world.artoo_home) as view:
        assert view.difference().empty


def test_a_view_that_cannot_be_taken_is_let_go(state: ViewState, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the error is: the lock is free again."""
    with monkeypatch.context() as patched:
        patched.setattr(view_state, "head_of", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            state.held()
    with state.place.locked():
        pass


def _interrupted(_: Path) -> str | None:
    raise KeyboardInterrupt


def test_who_ends_a_cut_apply_holds_what_comes_after_it(world: World, state: ViewState) -> None:
    """The view is gone with its lock: a task that goes on waits for whoever looks at that."""
    state.held()
    state.close()
    done = world.artoo_home / "undo/task-1/act"
    done.mkdir(parents=True)
    for name in ("journal.json", "done"):
        (done / name).touch()
    (state.place.base / "applying.json").write_text('{"record": "act", "whole": true, "paths": []}')
    with opened(state.place, world.artoo_home), pytest.raises(ViewInUse), state.place.locked():
        pass
    assert not state.place.exists
