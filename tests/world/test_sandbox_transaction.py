"""The transaction: all or nothing, never over somebody else's change, and undone on demand."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from sandbox_snapshots import snapshot
from sandbox_world import World, applied, asked

from artoo.contracts.changes import digest_of
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Sandbox
from artoo.world.undo import Keep, prune, undo, undoable


def fill(world: World) -> None:
    for name in ("a", "b", "c"):
        (world.project / name).write_text(f"old {name}\n")
    (world.project / "dir").mkdir()
    (world.project / "dir" / "inner").write_text("inner")
    (world.project / "link").symlink_to("a")
    os.utime(world.project / "a", ns=(10**18, 10**18))


_CHANGE_ALL = (
    "echo new > a; rm b; chmod 600 c; rm -r dir; echo x > dir; ln -sf c link; mkdir -p n/m; echo y > n/m/f"
)


async def test_undo_restores(sandbox: Sandbox, world: World) -> None:
    """Undo after apply gives back contents, modes, links, times and inodes of what was changed."""
    fill(world)
    before = snapshot(world.home, times=True)
    inode = (world.project / "a").stat().st_ino
    assert (await applied(await sandbox.run(world.bash(_CHANGE_ALL)))).applied
    assert snapshot(world.home) != before
    report = undo(world.artoo_home, "task-1")
    assert report.refused == ()
    assert snapshot(world.home, times=True) == before
    assert (world.project / "a").stat().st_ino == inode


async def test_undo_refuses_file_by_file(sandbox: Sandbox, world: World) -> None:
    """A file that the user changed since is left alone and named; the others are put back."""
    fill(world)
    await applied(await sandbox.run(world.bash(_CHANGE_ALL)))
    (world.project / "a").write_text("the user's own")
    (world.project / "n" / "m" / "mine").write_text("the user's own")
    report = undo(world.artoo_home, "task-1")
    refused = {conflict.path.removeprefix(f"{world.project}/") for conflict in report.refused}
    assert refused == {"a", "n", "n/m"}
    assert (world.project / "a").read_text() == "the user's own"
    assert (world.project / "n" / "m" / "mine").exists()
    assert not (world.project / "n" / "m" / "f").exists()
    assert (world.project / "b").read_text() == "old b\n"
    assert (world.project / "dir" / "inner").read_text() == "inner"


async def test_undo_of_several_acts(sandbox: Sandbox, world: World) -> None:
    """Acts of one task on the same file are undone in reverse order."""
    fill(world)
    before = snapshot(world.home, times=True)
    for text in ("one", "two", "three"):
        await applied(await sandbox.run(world.bash(f"echo {text} > a; echo {text} >> log")))
    assert undo(world.artoo_home, "task-1").refused == ()
    assert snapshot(world.home, times=True) == before
    with pytest.raises(SandboxError, match="nothing is kept"):
        undo(world.artoo_home, "task-1")


@pytest.mark.parametrize(
    "meddle",
    [
        "(p / 'a').write_text('mine')",
        "(p / 'a').unlink()",
        "(p / 'b').unlink() or (p / 'b').mkdir()",
        "(p / 'dir' / 'mine').write_text('mine')",
        "(p / 'n').write_text('mine')",
        "(p / 'c').chmod(0o640)",
        "(p / 'link').unlink() or (p / 'link').symlink_to('b')",
    ],
)
async def test_conflict_refuses_the_whole_act(sandbox: Sandbox, world: World, meddle: str) -> None:
    """If one path was changed meanwhile nothing of the act is applied, and that path is named."""
    fill(world)
    run = await sandbox.run(world.bash(_CHANGE_ALL))
    eval(meddle, {"p": world.project})
    before = snapshot(world.home, times=True, identity=True)
    report = await applied(run)
    assert not report.applied
    assert len(report.conflicts) == 1
    assert snapshot(world.home, times=True, identity=True) == before


async def test_change_during_the_run_is_a_conflict(sandbox: Sandbox, world: World) -> None:
    """A file that the user saves while the command runs is not overwritten."""
    fill(world)
    (world.project / "flag").touch()
    task = asyncio.ensure_future(sandbox.run(world.bash("sleep 0.4; echo task > a")))
    await asyncio.sleep(0.2)
    (world.project / "a").write_text("the user's own")
    report = await applied(await task)
    assert [conflict.path for conflict in report.conflicts] == [f"{world.project}/a"]
    assert (world.project / "a").read_text() == "the user's own"


async def test_parallel_runs_lose_no_update(sandbox: Sandbox, world: World) -> None:
    """Two runs that change one path: the second to apply is a conflict. Disjoint ones both take effect."""
    (world.project / "counter").write_text("0\n")
    scripts = [f"echo $(( $(cat counter) + 1 )) > counter; mkdir -p out; echo x > out/{n}" for n in range(4)]
    runs = await asyncio.gather(*(sandbox.run(world.bash(script)) for script in scripts))
    reports = [await applied(run) for run in runs]
    assert [report.applied for report in reports] == [True, False, False, False]
    assert all("counter" in report.conflicts[0].path for report in reports[1:])
    runs = await asyncio.gather(*(sandbox.run(world.bash(f"mkdir -p o2; echo x > o2/{n}")) for n in range(4)))
    assert all([(await applied(run)).applied for run in runs])
    assert sorted(path.name for path in (world.project / "o2").iterdir()) == ["0", "1", "2", "3"]


async def test_approval_is_bound_to_the_act(sandbox: Sandbox, world: World) -> None:
    """A digest of another act applies nothing; content counts, not only names."""
    one = await sandbox.run(world.bash("echo one > f"))
    two = await sandbox.run(world.bash("echo two > f"))
    assert one.staged.digest != two.staged.digest
    with pytest.raises(SandboxError, match="another act"):
        await two.staged.apply(digest=one.staged.digest)
    await one.staged.drop()
    assert (await applied(two)).applied
    with pytest.raises(SandboxError, match="applied or dropped before"):
        await two.staged.apply(digest=two.staged.digest)


async def test_part_of_an_act(sandbox: Sandbox, world: World) -> None:
    """Chosen paths alone take effect, with the new directories that they need."""
    run = await sandbox.run(world.bash("mkdir -p x/y; echo 1 > x/y/yes; echo 2 > x/y/no; echo 3 > top"))
    chosen = [change for change in run.staged.changes if change.path.endswith("/yes")]
    report = await run.staged.apply(digest=digest_of(chosen), paths=[chosen[0].path])
    assert report.applied
    assert sorted(snapshot(world.project)) == ["x", "x/y", "x/y/yes"]


async def test_failure_half_way_puts_all_back(
    sandbox: Sandbox, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the system refuses in the middle of an apply, everything is as before and the error says so."""
    from artoo.world import converge

    fill(world)
    run = await sandbox.run(world.bash(_CHANGE_ALL))
    before = snapshot(world.home, times=True)
    real, calls = os.rename, iter(range(100))

    def failing(*args: object, **more: object) -> None:
        if "new" in str(args[0]) and next(calls) == 1:
            raise OSError(28, "No space left on device")
        real(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(converge.os, "rename", failing)
    with pytest.raises(SandboxError, match="all was put back"):
        await applied(run)
    assert snapshot(world.home, times=True) == before


async def test_full_disk_is_a_clear_error(sandbox: Sandbox, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No room for the new contents: nothing is changed, the error names the cause."""
    from artoo.world import prepare

    fill(world)
    run = await sandbox.run(world.bash(_CHANGE_ALL))
    before = snapshot(world.home, times=True, identity=True)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(prepare, "copy_node", full)
    monkeypatch.setattr(prepare, "keep_image", full)
    with pytest.raises(SandboxError, match="No space left"):
        await applied(run)
    assert snapshot(world.home, times=True, identity=True) == before


async def test_write_goes_the_same_way(sandbox: Sandbox, world: World) -> None:
    """A written file is staged, decided, applied and undone like a command's."""
    staged = await sandbox.stage_write(world.request(), Path("n/new.txt"), b"hello")
    assert asked(staged.changes) == []
    assert (await staged.apply(digest=staged.digest)).applied
    assert (world.project / "n" / "new.txt").read_text() == "hello"
    (world.home / "thesis").write_text("work")
    staged = await sandbox.stage_write(world.request(), Path("../thesis"), b"x")
    assert asked(staged.changes) == [f"{world.home}/thesis"]
    await staged.drop()
    with pytest.raises(SandboxError, match="outside"):
        await sandbox.stage_write(world.request(), Path("/etc/passwd"), b"x")


async def test_write_through_a_link_names_the_target(sandbox: Sandbox, world: World) -> None:
    """Writing to a link shows, and changes, the file behind it."""
    (world.home / "real").write_text("old")
    (world.project / "link").symlink_to(world.home / "real")
    staged = await sandbox.stage_write(world.request(), Path("link"), b"x")
    assert [change.path for change in staged.changes] == [f"{world.home}/real"]
    await staged.drop()


async def test_home_on_another_file_system(sandbox: Sandbox, world: World) -> None:
    """Contents cross file systems by a copy beside their target; nothing of it stays behind."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == world.home.stat().st_dev:
        pytest.skip("no second file system to try")
    import dataclasses
    import tempfile

    with tempfile.TemporaryDirectory(dir=shared) as place:
        project = Path(place).resolve()
        (project / "old").write_text("old")
        request = dataclasses.replace(
            world.bash("echo new > old; echo n > new; ln new twin; ln -s new l"),
            cwd=project,
            roots=dataclasses.replace(world.roots, project=project),
        )
        before = snapshot(project, times=True)
        assert (await applied(await sandbox.run(request))).applied
        assert sorted(snapshot(project)) == ["l", "new", "old", "twin"]
        assert (project / "new").stat().st_ino == (project / "twin").stat().st_ino
        assert undo(world.artoo_home, "task-1").refused == ()
        assert snapshot(project, times=True) == before


async def test_kept_acts_expire(sandbox: Sandbox, world: World) -> None:
    """The list names tasks with their end; too old or too large ones are forgotten, oldest first."""
    (world.project / "f").write_text("x" * 1000)
    for text in ("one", "two"):
        await applied(await sandbox.run(world.bash(f"echo {text} > f")))
    listed = undoable(world.artoo_home, Keep(days=2))
    assert [(task.task_id, task.transactions) for task in listed] == [("task-1", 2)]
    assert listed[0].until == listed[0].last_at + 2 * 86400
    assert prune(world.artoo_home, Keep(days=2, total_bytes=10), now=listed[0].last_at) == 1
    assert prune(world.artoo_home, Keep(days=2), now=listed[0].last_at + 3 * 86400) == 1
    assert undoable(world.artoo_home, Keep()) == ()


async def test_modes_survive(sandbox: Sandbox, world: World) -> None:
    """Applied files have the modes and times that the command gave them."""
    await applied(await sandbox.run(world.bash("umask 077; echo x > f; chmod 751 f; touch -d @1000000000 f")))
    seen = (world.project / "f").stat()
    assert (stat.S_IMODE(seen.st_mode), seen.st_mtime) == (0o751, 1_000_000_000)
