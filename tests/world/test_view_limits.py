"""What ends a command, and what a view does without one."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import stat
import subprocess
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_world import World
from view_world import bash, out, overlay_views, place_of

from artoo.contracts.changes import ChangeKind
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import MIB, Limits
from artoo.ports.world import View
from artoo.world import fold
from artoo.world.allowance import Extent
from artoo.world.base import read_base
from artoo.world.choose import open_sandbox
from artoo.world.difference import difference_of
from artoo.world.opening import views_in
from artoo.world.view_place import ViewPlace


@pytest.mark.parametrize(
    ("script", "limits", "status"),
    [
        ("echo x > made; sleep 30", Limits(wall_seconds=1.0), "timeout"),
        ("echo x > made; yes", Limits(output_bytes=10_000), "output_limit"),
        ("echo x > made; head -c 40M /dev/zero > big; sleep 5", Limits(disk_bytes=8 * MIB), "disk_limit"),
        ("echo x > made; exec head -c 40M /dev/zero > big", Limits(disk_bytes=8 * MIB), "disk_limit"),
        (
            "trap '' XFSZ; echo x > made; head -c 40M /dev/zero > big; true",
            Limits(disk_bytes=8 * MIB),
            "disk_limit",
        ),
        (
            "truncate -s 8M big; echo x >> big; head -c 1M /dev/zero >> big",
            Limits(disk_bytes=8 * MIB),
            "disk_limit",
        ),
    ],
)
async def test_a_stopped_command_changes_nothing(view: View, script: str, limits: Limits, status: str) -> None:
    """Of a command that was stopped by a limit nothing is in the view, and the notes say so."""
    await bash(view, "echo before > before")
    run = await bash(view, script, limits=limits)
    assert run.status == status
    assert run.changes == ()
    assert "its changes were dropped" in run.notes
    assert await out(view, "ls -A") == "before\n"


async def test_a_file_may_be_as_large_as_all_may_be(view: View) -> None:
    """A hole of that size is no cut file; one that would be larger is refused, and the command goes on."""
    limits = Limits(disk_bytes=8 * MIB)
    run = await bash(view, "truncate -s 8M big; truncate -s 9M larger; echo x > made", limits=limits)
    assert (run.status, len(run.changes)) == ("ok", 3)
    assert await out(view, "stat -c %s big larger") == f"{8 * MIB}\n0\n"


def _until_there(place: ViewPlace) -> None:
    while not place.exists:
        time.sleep(0.01)


def _at_work_in(project: Path) -> list[str]:
    """The processes, of whatever sandbox, that stand in a project: by its name, which no other test has."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").readlink() == project:
                found.append((entry / "cmdline").read_text())
    return found


async def test_cancelling_drops_a_command(view: View, world: World) -> None:
    """A cancelled command is ended, nothing of it is in the view, and the view goes on."""
    (world.project / "fifo").touch()
    running = asyncio.create_task(bash(view, "echo x > made; while :; do :; done"))
    place = place_of(world)
    await asyncio.to_thread(_until_there, place)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await out(view, "ls -A") == "fifo\n"
    assert list(place.commands.iterdir()) == []
    assert _at_work_in(world.project) == []


async def test_writing_a_file(view: View, world: World) -> None:
    """A written file lies in the view, with its directories, over what a command made, and keeps mode and links."""
    (world.project / "script").write_text("old\n")
    (world.project / "script").chmod(0o755)
    (world.project / "link").symlink_to("script")
    await bash(view, "mkdir -p made/deep; echo 1 > made/deep/f; rm -rf gone")
    changed = await view.write(world.project / "made" / "deep" / "f", b"2\n")
    assert [change.kind for change in changed] == [ChangeKind.OVERWRITTEN]
    new = await view.write(world.project / "a" / "b" / "c", b"c\n")
    assert [change.path.removeprefix(f"{world.project}/") for change in new] == ["a", "a/b", "a/b/c"]
    assert [change.path for change in await view.write(world.project / "link", b"new\n")] == [
        f"{world.project}/script"
    ]
    assert await out(view, "cat made/deep/f a/b/c script; stat -c %a script") == "2\nc\nnew\n755\n"
    assert (world.project / "script").read_text() == "old\n"
    assert not (world.project / "a").exists()


async def test_where_nothing_can_be_written(view: View, world: World, tmp_path: Path) -> None:
    """Outside the roots, over a directory, below a file: refused with the reason; /tmp is the task's own."""
    (world.project / "file").write_text("x")
    for path, reason in (
        (Path("/etc/artoo-test"), "outside home"),
        (world.project, "not a regular file"),
        (world.project / "file" / "below", "not a directory"),
    ):
        with pytest.raises(SandboxError, match=reason):
            await view.write(path, b"x")
    assert await view.write(Path("/tmp/own/x"), b"x\n") == ()
    assert await out(view, "cat /tmp/own/x") == "x\n"
    assert not Path("/tmp/own/x").exists()


async def test_what_the_real_files_were_is_kept(view: View, world: World) -> None:
    """Before a path of the person's is first changed, its state and content are written down; later ones do not
    change that, and what the task itself made is not in it."""
    (world.project / "file").write_text("real\n")
    (world.project / "tree" / "deep").mkdir(parents=True)
    (world.project / "tree" / "deep" / "leaf").write_text("leaf\n")
    await bash(view, "echo 1 > file; rm -r tree; echo new > own")
    await bash(view, "echo 2 > file; echo 2 > own; chmod 700 .")
    base = read_base(place_of(world).base_file())
    relative = {path.removeprefix(f"{world.home}/"): one for path, one in base.items()}
    assert set(relative) == {
        str(world.home),
        "project",
        "project/file",
        "project/tree",
        "project/tree/deep",
        "project/tree/deep/leaf",
    }
    real = (world.project / "file").stat()
    kept = relative["project/file"]
    assert (kept.was.inode, kept.changed_ns, kept.was.size) == (real.st_ino, real.st_ctime_ns, 5)
    assert kept.sha256 == hashlib.sha256(b"real\n").hexdigest()


@pytest.fixture
def little_room(world: World) -> Iterator[World]:
    """artoo's home on a disk of two megabytes."""
    world.artoo_home.mkdir()
    command = ("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(world.artoo_home))
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not mount a file system")
    yield world
    subprocess.run(("umount", "-l", str(world.artoo_home)), check=True)


async def test_no_room_for_what_a_command_did(little_room: World) -> None:
    """A command whose changes do not fit on the disk is an error that says so; the view is as it was before it."""
    view = overlay_views("bubblewrap", little_room)("task-1", little_room.roots)
    await bash(view, "echo 1 > small")
    with pytest.raises(SandboxError, match=r"No space left.*dropped"):
        await bash(view, "echo 2 > small; head -c 5M /dev/urandom > big")
    assert await out(view, "cat small; ls -A | grep -v artoo") == "1\nsmall\n"
    await bash(view, "echo 3 > small")
    assert await out(view, "cat small") == "3\n"
    await view.close()


async def test_no_room_while_folding(view: View, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fold that the disk refuses is finished by the next one who needs the view."""
    await bash(view, "mkdir d; echo 1 > d/f")
    real = os.replace

    def refuse(source: str, target: str, **folders: int) -> None:
        """What folds moves names between two open folders."""
        if folders:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(source, target)

    monkeypatch.setattr(fold.os, "replace", refuse)
    with pytest.raises(SandboxError, match="becomes part of the view"):
        await bash(view, "echo 2 > d/f; echo 2 > g")
    monkeypatch.setattr(fold.os, "replace", real)
    assert await out(view, "cat d/f g") == "2\n2\n"
    assert list(place_of(world).commands.iterdir()) == []


async def test_locked_directories_keep_their_modes(any_view: View, world: World) -> None:
    """Directories and files without any rights go through folds as they are."""
    await bash(any_view, "mkdir -p d/e; echo x > d/e/f; chmod 000 d/e/f d/e d")
    await bash(any_view, "chmod 700 d; echo y > d/y; chmod 000 d")
    found = await any_view.changes()
    assert [change.path.removeprefix(f"{world.project}/") for change in found] == ["d", "d/e", "d/e/f", "d/y"]
    top = place_of(world).upper("task", 0) / "project" / "d"
    assert stat.S_IMODE(top.stat().st_mode) == 0
    assert await out(any_view, "stat -c %a d; chmod 700 d; stat -c %a d/e; cat d/y") == "0\n0\ny\n"


async def test_a_full_tmp_ends_one_command_and_no_other(view: View) -> None:
    """The task's /tmp counts against the disk limit; when it is what was full, it is emptied."""
    limits = Limits(disk_bytes=32 * MIB)
    fill = "for n in 1 2 3 4 5 6; do head -c 10M /dev/zero > /tmp/filled$n; done; sleep 5"
    assert (await bash(view, fill, limits=limits)).status == "disk_limit"
    run = await bash(view, "echo x > made; ls -d /tmp/filled* 2>/dev/null; sleep 0.4", limits=limits)
    assert (run.status, run.stdout.text) == ("ok", "")


async def test_a_flood_in_parts_is_asked_about(view: View, world: World) -> None:
    """What a task makes is counted for the task: three commands below the bound are one flood above it."""
    for part in range(3):
        run = await bash(view, f"mkdir d{part}; cd d{part}; seq 1 1700 | xargs touch")
        assert run.status == "ok"
        found = difference_of(place_of(world), world.artoo_home)
        assert (found.flood is not None, found.silent) == (part == 2, part < 2)


@pytest.fixture
async def little_view(world: World) -> AsyncGenerator[View]:
    """A view that may hold 8 MiB in all."""
    view = replace(overlay_views("bubblewrap", world), most=Extent(8 * MIB, 4_000))("task-1", world.roots)
    yield view
    await view.close()


async def test_the_bound_is_of_all_commands_together(little_view: View) -> None:
    """Three times 3 MiB do not fit into 8; what was made before stays, and after a removal there is room again."""
    fill = "head -c 3M /dev/urandom > {0}; sleep 0.5"
    assert (await bash(little_view, fill.format("one"))).status == "ok"
    assert (await bash(little_view, fill.format("two"))).status == "ok"
    await bash(little_view, "head -c 5M /dev/urandom > three; sleep 5")
    assert await out(little_view, "ls") == "one\ntwo\n"
    await bash(little_view, "rm one two")
    assert (await bash(little_view, fill.format("three"))).status == "ok"
    assert await out(little_view, "ls") == "three\n"


async def test_the_bound_is_the_settings(world: World) -> None:
    """`limits.view_megabytes` is what one task's view may hold, and what is refused says so."""
    world.artoo_home.mkdir(mode=0o700)
    sandbox = await open_sandbox(world.artoo_home)
    view = views_in(sandbox, world.artoo_home, megabytes=16)("t", world.roots)
    try:
        with pytest.raises(SandboxError, match=r"16 MiB already.*limits\.view_megabytes"):
            await view.write(Path("file"), b"1" * 17 * MIB)
    finally:
        await view.close()


async def test_what_is_written_twice_counts_once(little_view: View) -> None:
    """One file of 3 MiB written five times is 3 MiB: the count is measured anew before anything is refused."""
    for _ in range(5):
        assert (await bash(little_view, "head -c 3M /dev/urandom > again; sleep 0.3")).status == "ok"


async def test_a_file_tool_has_the_same_bound(little_view: View, world: World) -> None:
    """A file that does not fit into the view is refused with what to do about it."""
    await little_view.write(Path("first"), b"1" * 6 * MIB)
    with pytest.raises(SandboxError, match="the most that its view may hold"):
        await little_view.write(Path("second"), b"2" * 6 * MIB)
    assert await out(little_view, "ls") == "first\n"


async def test_paths_are_bounded_for_the_task(little_view: View) -> None:
    """Beyond the bound a command may still make a thousand paths, so that one that tidies up can run."""
    for part in range(3):
        assert (await bash(little_view, f"mkdir d{part}; cd d{part}; seq 1300 | xargs touch")).status == "ok"
    flood = "mkdir more; cd more; seq 3000 | xargs touch; sleep 5"
    assert (await bash(little_view, flood)).status == "disk_limit"
    # however long it takes: until a directory goes, the overlay has a name there for each file that is removed
    assert (await bash(little_view, "rm d0/*; sleep 0.5; rm -r d0 d1")).status == "ok"
    assert (await bash(little_view, "mkdir more; cd more; seq 2000 | xargs touch; sleep 0.5")).status == "ok"
