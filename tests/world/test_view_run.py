"""Commands in a view: what one did, the next sees, and the real files do not."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from layers import view_of
from sandbox_snapshots import snapshot
from sandbox_world import World
from view_world import bash, out, place_of

from artoo.contracts.changes import ChangeKind
from artoo.contracts.errors import SandboxError
from artoo.ports.world import View
from artoo.world import files, settle
from artoo.world.closing import opened
from artoo.world.journal import Record
from artoo.world.pending import SettledRecord
from artoo.world.settle import Told


async def test_one_command_sees_what_the_one_before_did(any_view: View, world: World) -> None:
    """Made, edited, deleted and made again: the next command sees it, and nothing of it is real."""
    (world.project / "old").write_text("old\n")
    (world.project / "tree" / "deep").mkdir(parents=True)
    (world.project / "tree" / "deep" / "leaf").write_text("leaf\n")
    before = snapshot(world.home, times=True, identity=True)
    first = await bash(any_view, "echo new > made; echo more >> old; rm -r tree")
    kinds = {change.path.removeprefix(f"{world.project}/"): change.kind for change in first.changes}
    assert kinds == {
        "made": ChangeKind.CREATED,
        "old": ChangeKind.OVERWRITTEN,
        "tree": ChangeKind.DELETED,
        "tree/deep": ChangeKind.DELETED,
        "tree/deep/leaf": ChangeKind.DELETED,
    }
    assert await out(any_view, "cat made old; [ ! -e tree ]; mkdir tree; ls -A tree") == "new\nold\nmore\n"
    second = await bash(any_view, "rm made; echo x > tree/x")
    assert [(change.path.rpartition("/")[2], change.kind) for change in second.changes] == [
        ("made", ChangeKind.DELETED),
        ("x", ChangeKind.CREATED),
    ]
    assert await out(any_view, "ls -A; ls -A tree; cat tree/x") == "old\ntree\nx\nx\n"
    assert snapshot(world.home, times=True, identity=True) == before


async def test_the_tasks_own_tmp_lasts(any_view: View) -> None:
    """What a command leaves in /tmp is there for the next, and no note says otherwise."""
    first = await bash(any_view, "echo kept > /tmp/kept")
    assert (first.changes, first.notes) == ((), ())
    assert await out(any_view, "cat /tmp/kept /var/tmp/kept") == "kept\nkept\n"


async def test_read_only_runs_change_nothing(any_view: View) -> None:
    """A read-only command's changes are reported and gone."""
    run = await bash(any_view, "echo x > made", read_only=True)
    assert [change.kind for change in run.changes] == [ChangeKind.CREATED]
    assert await out(any_view, "ls -A") == ""


async def test_nothing_is_left_of_commands(any_view: View, world: World) -> None:
    """After each command the view holds its layers and nothing on its way."""
    await bash(any_view, "echo x > made; mkdir d")
    place = place_of(world)
    assert list(place.commands.iterdir()) == []
    assert sorted(path.name for path in place.upper("task", 0).rglob("*")) == ["d", "made", "project"]


async def test_nothing_of_a_folded_command_stays(view: View, world: World) -> None:
    """Its empty directories go while the next command runs, or when the view is closed."""
    spent = place_of(world).spent
    await bash(view, "mkdir -p a/b; echo x > a/b/made")
    await bash(view, "true")
    assert list(spent.iterdir()) == []
    await bash(view, "echo y > a/b/made")
    await view.write(Path("a/written"), b"z")
    await view.close()
    assert list(spent.iterdir()) == []
    assert (await bash(view, "cat a/b/made a/written")).stdout.text == "y\nz"
    await view.close()


async def test_nobody_works_in_a_view_of_which_an_apply_is_cut(view: View, world: World) -> None:
    """Its files may be the person's until a start has finished or undone that."""
    place = view_of(world, lambda home: (home / "project" / "made").write_text("x"))
    mark, record = place.base / "applying.json", world.artoo_home / "undo/task-1/act"
    mark.write_text('{"record": "act", "whole": false, "paths": []}')
    record.mkdir(parents=True)
    with pytest.raises(SandboxError, match=r"was cut and is not recovered yet"):
        await bash(view, "echo more >> made")
    record.rmdir()
    assert await out(view, "cat made") == "x"
    assert not mark.exists()


@pytest.mark.parametrize("left", [b"", bytes(64), bytes(64) + b'"paths":[]}\n', b'{"record":"act","wh'])
async def test_a_mark_that_was_never_durable_is_of_no_act(view: View, world: World, left: bytes) -> None:
    """A power cut before the commit leaves what it likes, the end without what is before it too; what has its end
    and no hole, and cannot be read, is damage."""
    place = view_of(world, lambda home: (home / "project" / "made").write_text("x"))
    mark = place.base / "applying.json"
    mark.write_bytes(left.replace(b"\0", b"x").strip() + b"\n")
    with pytest.raises(SandboxError, match=r"applying\.json cannot be read"):
        await bash(view, "cat made")
    mark.write_bytes(left)
    assert await out(view, "cat made") == "x"
    assert not mark.exists()


@pytest.mark.parametrize("many", [1, 40])
def test_the_mark_is_durable_before_its_act_is(world: World, monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """Synced as a file, or with its whole file system: with few changes, and with many."""
    place = view_of(world, lambda home: [(home / "project" / f"f{n}").write_text("x") for n in range(many)])
    synced: set[tuple[int, int]] = set()
    whole: set[int] = set()
    commit = Record.commit

    def committed(record: Record) -> None:
        seen = (place.base / "applying.json").stat()
        assert (seen.st_dev, seen.st_ino) in synced or seen.st_dev in whole
        commit(record)

    def one(descriptor: int) -> None:
        seen = os.fstat(descriptor)
        synced.add((seen.st_dev, seen.st_ino))

    def all_on(descriptor: int) -> None:
        whole.add(os.fstat(descriptor).st_dev)

    monkeypatch.setattr(Record, "commit", committed)
    monkeypatch.setattr(files, "_sync", one)
    monkeypatch.setattr(files, "_sync_file_system", all_on)
    with opened(place, world.artoo_home) as closing:
        found = closing.difference()
        assert closing.apply(found, digest=found.digest).whole
    assert bool(whole) is (many > 1)


@pytest.mark.parametrize("whole", [False, True])
async def test_an_apply_that_had_no_room_to_end_is_ended_before_the_next_command(
    view: View, world: World, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """In the same process too: no start is needed for it. Without room the command says so."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    place = view_of(world, lambda home: [(home / "project" / name).write_text(name) for name in "ab"])
    with monkeypatch.context() as patched:
        patched.setattr(settle, "_rebase", full)
        patched.setattr(settle, "_tell", full)
        with opened(place, world.artoo_home) as closing:
            found = closing.difference()
            line = SettledRecord(at=1.0, task_id="task-1", what="applied", by="person", digest=found.digest)
            paths = None if whole else [str(world.project / "a")]
            closing.apply(found, digest=found.digest, paths=paths, told=Told(settled=line))
        with pytest.raises(SandboxError, match=r"No space left on device.*free space"):
            await bash(view, "true")
    assert await out(view, "cat a b; echo more >> a") == "ab"
    with pytest.raises(SandboxError, match="another process"), place.locked():
        pass
    assert (world.project / "a").read_text() == "a"
    assert (world.project / "b").exists() is whole
