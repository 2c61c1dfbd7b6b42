"""The transaction: all or nothing, never over somebody else's change, and undone on demand."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_snapshots import snapshot
from sandbox_world import Commands, World

from artoo.contracts.errors import SandboxError
from artoo.world.closing import opened
from artoo.world.exchange import Place
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


async def test_undo_restores(sandbox: Commands, world: World) -> None:
    """Undo after apply gives back contents, modes, links, times and inodes of what was changed."""
    fill(world)
    before = snapshot(world.home, times=True)
    inode = (world.project / "a").stat().st_ino
    assert (await sandbox.run(world.bash(_CHANGE_ALL))).apply().applied
    assert snapshot(world.home) != before
    report = undo(world.artoo_home, "task-1")
    assert report.refused == ()
    assert snapshot(world.home, times=True) == before
    assert (world.project / "a").stat().st_ino == inode


async def test_undo_refuses_file_by_file(sandbox: Commands, world: World) -> None:
    """A file that the user changed since is left alone and named; the others are put back."""
    fill(world)
    (await sandbox.run(world.bash(_CHANGE_ALL))).apply()
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


async def test_undo_of_several_acts(sandbox: Commands, world: World) -> None:
    """Acts of one task on the same file are undone in reverse order."""
    fill(world)
    before = snapshot(world.home, times=True)
    for text in ("one", "two", "three"):
        (await sandbox.run(world.bash(f"echo {text} > a; echo {text} >> log"))).apply()
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
async def test_conflict_refuses_the_whole_act(sandbox: Commands, world: World, meddle: str) -> None:
    """If one path was changed meanwhile nothing of the act is applied, and that path is named."""
    fill(world)
    run = await sandbox.run(world.bash(_CHANGE_ALL))
    eval(meddle, {"p": world.project})
    before = snapshot(world.home, times=True, identity=True)
    report = run.apply()
    assert not report.applied
    assert len(report.conflicts) == 1
    assert snapshot(world.home, times=True, identity=True) == before


async def test_change_during_the_run_is_a_conflict(sandbox: Commands, world: World) -> None:
    """A file that the user saves while a command runs that has it open already is not overwritten."""
    fill(world)
    task = asyncio.ensure_future(sandbox.run(world.bash("echo task >> a; sleep 0.6")))
    await asyncio.sleep(0.4)
    (world.project / "a").write_text("the user's own")
    run = await task
    assert [conflict.path for conflict in run.difference.conflicts] == [f"{world.project}/a"]
    run.apply()
    assert (world.project / "a").read_text() == "the user's own"


async def test_parallel_runs_lose_no_update(sandbox: Commands, world: World) -> None:
    """Two runs that change one path: the second to apply is a conflict. Disjoint ones both take effect."""
    (world.project / "counter").write_text("0\n")
    scripts = [f"echo $(( $(cat counter) + 1 )) > counter; mkdir -p out; echo x > out/{n}" for n in range(4)]
    tasks = [replace(world.bash(script), task_id=f"task-{n}") for n, script in enumerate(scripts)]
    runs = await asyncio.gather(*map(sandbox.run, tasks))
    reports = [run.apply() for run in runs]
    assert [report.applied for report in reports] == [True, False, False, False]
    assert all("counter" in report.conflicts[0].path for report in reports[1:])
    tasks = [replace(task, argv=("bash", "-c", f"mkdir -p o2; echo x > o2/{task.task_id}")) for task in tasks]
    for run in runs[1:]:
        run.drop()
    runs = await asyncio.gather(*map(sandbox.run, tasks))
    assert all(run.apply().applied for run in runs)
    assert sorted(path.name for path in (world.project / "o2").iterdir()) == [f"task-{n}" for n in range(4)]


async def test_approval_is_bound_to_the_act(sandbox: Commands, world: World) -> None:
    """A digest of another act applies nothing; content counts, not only names."""
    one = await sandbox.run(world.bash("echo one > f"))
    one.drop()
    two = await sandbox.run(world.bash("echo two > f"))
    assert one.difference.digest != two.difference.digest
    with opened(two.place, world.artoo_home) as view, pytest.raises(SandboxError, match="what was agreed to"):
        view.apply(two.difference, digest=one.difference.digest)
    assert two.apply().applied


async def test_part_of_an_act(sandbox: Commands, world: World) -> None:
    """Chosen paths alone take effect, with the new directories that they need."""
    run = await sandbox.run(world.bash("mkdir -p x/y; echo 1 > x/y/yes; echo 2 > x/y/no; echo 3 > top"))
    chosen = [change for change in run.changes if change.path.endswith("/yes")]
    assert run.apply([chosen[0].path]).applied
    assert sorted(snapshot(world.project)) == ["x", "x/y", "x/y/yes"]


async def test_failure_half_way_puts_all_back(
    sandbox: Commands, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the system refuses in the middle of an apply, everything is as before and the error says so."""
    from artoo.world import converge

    fill(world)
    run = await sandbox.run(world.bash(_CHANGE_ALL))
    before = snapshot(world.home, times=True)
    real, calls = converge.exchange, iter(range(100))

    def failing(*places: Place) -> None:
        if next(calls) == 1:
            raise OSError(28, "No space left on device")
        real(*places)

    monkeypatch.setattr(converge, "exchange", failing)
    with pytest.raises(SandboxError, match="all was put back"):
        run.apply()
    assert snapshot(world.home, times=True) == before


async def test_full_disk_is_a_clear_error(sandbox: Commands, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
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
        run.apply()
    assert snapshot(world.home, times=True, identity=True) == before


async def test_home_on_another_file_system(sandbox: Commands, world: World) -> None:
    """Contents cross file systems by a copy beside their target; nothing of it stays behind."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == world.home.stat().st_dev:
        pytest.skip("no second file system to try")
    import tempfile

    with tempfile.TemporaryDirectory(dir=shared) as place:
        project = Path(place).resolve()
        (project / "old").write_text("old")
        request = replace(
            world.bash("echo new > old; echo n > new; ln new twin; ln -s new l"),
            cwd=project,
            roots=replace(world.roots, project=project),
        )
        before = snapshot(project, times=True)
        assert (await sandbox.run(request)).apply().applied
        assert sorted(snapshot(project)) == ["l", "new", "old", "twin"]
        assert (project / "new").stat().st_ino == (project / "twin").stat().st_ino
        assert undo(world.artoo_home, "task-1").refused == ()
        assert snapshot(project, times=True) == before


async def test_kept_acts_expire(sandbox: Commands, world: World) -> None:
    """The list names tasks with their end; too old or too large ones are forgotten, oldest first."""
    (world.project / "f").write_text("x" * 1000)
    for text in ("one", "two"):
        (await sandbox.run(world.bash(f"echo {text} > f"))).apply()
    listed = undoable(world.artoo_home, Keep(days=2))
    assert [(task.task_id, task.transactions) for task in listed] == [("task-1", 2)]
    assert listed[0].until == listed[0].last_at + 2 * 86400
    assert prune(world.artoo_home, Keep(days=2, total_bytes=10), now=listed[0].last_at) == 1
    assert prune(world.artoo_home, Keep(days=2), now=listed[0].last_at + 3 * 86400) == 0
    assert prune(world.artoo_home, Keep(days=2), now=listed[0].last_at + 6 * 86400) == 1
    assert undoable(world.artoo_home, Keep()) == ()


async def test_a_wrong_clock_prunes_nothing(sandbox: Commands, world: World) -> None:
    """A clock that is far ahead for a while loses no undo, however often it is looked at before and after."""
    (world.project / "f").write_text("old")
    (await sandbox.run(world.bash("rm f"))).apply()
    now = time.time()
    for at in (now + 40 * 86400, now + 41 * 86400, now, now + 8 * 86400, now + 31 * 86400):
        assert prune(world.artoo_home, Keep(), now=at) == 0
    assert undo(world.artoo_home, "task-1").refused == ()
    assert (world.project / "f").read_text() == "old"


async def test_what_cannot_be_read_does_not_stop_the_pruning(sandbox: Commands, world: World) -> None:
    """A damaged journal is kept, and what is older than it goes all the same."""
    for name in ("f", "g"):
        (world.project / name).write_text("old")
        (await sandbox.run(replace(world.bash(f"rm {name}"), task_id=name))).apply()
    journal = next((world.artoo_home / "undo" / "f").glob("*/journal.json"))
    journal.write_text("{")
    later = time.time() + 40 * 86400
    assert prune(world.artoo_home, Keep(), now=later) == 0
    assert prune(world.artoo_home, Keep(), now=later + 4 * 86400) == 1
    assert journal.exists()


async def test_modes_survive(sandbox: Commands, world: World) -> None:
    """Applied files have the modes and times that the command gave them."""
    (await sandbox.run(world.bash("umask 077; echo x > f; chmod 751 f; touch -d @1000000000 f"))).apply()
    seen = (world.project / "f").stat()
    assert (stat.S_IMODE(seen.st_mode), seen.st_mtime) == (0o751, 1_000_000_000)


@pytest.mark.parametrize("command", ["touch -h -d @1000000000 link", "ln -sfn a link"])
async def test_the_time_of_a_link_is_a_change_as_that_of_a_file_is(
    sandbox: Commands, world: World, command: str
) -> None:
    """What a command is said to have changed is applied, and undone."""
    fill(world)
    before = snapshot(world.home, times=True)
    ran = await sandbox.run(world.bash(command))
    assert [change.path for change in ran.changes] == [f"{world.project}/link"]
    assert ran.difference.silent and ran.apply().applied
    assert snapshot(world.home, times=True) != before
    assert undo(world.artoo_home, "task-1").refused == ()
    assert snapshot(world.home, times=True) == before


async def test_what_no_undo_could_give_back_is_not_replaced(
    sandbox: Commands, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user's file in a person's directory: the kernel lets them replace it, and not make it again."""
    fill(world)
    before = snapshot(world.home, times=True)
    waiting = await sandbox.run(world.bash("rm -f a; echo mine > a; echo x > b"))

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr("artoo.world.files.set_metadata", refused)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(SandboxError, match=rf"{world.project}/a belongs to somebody else \(user \d+\): no undo"):
        waiting.apply()
    assert snapshot(world.home, times=True) == before
