"""A task's workspace while the task works, with a real sandbox."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from pathlib import Path

import pytest
from task_world import World, until

from artoo.contracts.changes import ChangeKind, Node
from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import Command
from artoo.workspace import commit, state
from artoo.workspace.changes.base import rebase


async def test_a_task_that_only_reads_leaves_nothing_on_disk(world: World) -> None:
    """No sandbox is started and no directory is made before the first command or write."""
    (world.project / "a.txt").write_text("one")
    async with world.task() as task:
        files = task.workspace.files
        with files.open(files.resolve(world.project / "a.txt")) as file:
            assert file.read() == b"one"
        assert await task.workspace.changes() == ()
    assert not world.directory().base.exists()


async def test_what_a_command_does_stays_in_the_workspace(either: World) -> None:
    """The user's files are as they were, and the change set names every change."""
    (either.project / "old.txt").write_text("old")
    (either.project / "gone.txt").write_text("gone")
    async with either.task() as task:
        mark = await task.workspace.mark()
        await task.says("echo new > new.txt; echo more >> old.txt; rm gone.txt; mkdir sub; echo x > sub/x")
        changes = await task.workspace.changes_since(mark)
        kinds = {one.path.removeprefix(f"{either.project}/"): one.kind for one in changes}
        assert kinds == {
            "new.txt": ChangeKind.CREATED,
            "old.txt": ChangeKind.OVERWRITTEN,
            "gone.txt": ChangeKind.DELETED,
            "sub": ChangeKind.CREATED,
            "sub/x": ChangeKind.CREATED,
        }
        files = task.workspace.files
        assert files.names(files.resolve(either.project)) == ("new.txt", "old.txt", "sub")
    assert sorted(os.listdir(either.project)) == ["gone.txt", "old.txt"]
    assert either.classes() == {
        "project/new.txt": "silent",
        "project/old.txt": "edit",
        "project/gone.txt": "deletion",
        "project/sub": "silent",
        "project/sub/x": "silent",
    }


async def test_a_call_lists_what_a_directory_held_that_it_made_anew(either: World) -> None:
    """Also in its subdirectories, and not what an earlier call deleted."""
    for name in ("d/sub/c", "d/a", "d/gone"):
        (either.project / name).parent.mkdir(parents=True, exist_ok=True)
        (either.project / name).write_text(name)
    async with either.task() as task:
        await task.says("rm d/gone")
        mark = await task.workspace.mark()
        await task.says("rm -r d; mkdir -p d/sub; echo new > d/a")
        changes = await task.workspace.changes_since(mark)
    kinds = {one.path.removeprefix(f"{either.project}/"): one.kind for one in changes if one.node is Node.FILE}
    assert kinds == {"d/a": ChangeKind.OVERWRITTEN, "d/sub/c": ChangeKind.DELETED}


async def test_a_file_that_artoo_writes_is_seen_by_commands(either: World) -> None:
    """Directories are made as needed, links are followed, and the mode of an old file stays."""
    (either.project / "run.sh").write_text("old")
    (either.project / "run.sh").chmod(0o754)
    (either.project / "link").symlink_to("run.sh")
    async with either.task() as task:
        changes = await task.workspace.write(either.project / "deep" / "er" / "f", b"text")
        assert [one.path.removeprefix(f"{either.project}/") for one in changes] == ["deep", "deep/er", "deep/er/f"]
        await task.workspace.write(either.project / "link", b"new")
        assert await task.says("cat deep/er/f run.sh; stat -c %a run.sh; readlink link") == "textnew754\nrun.sh\n"
        machines = Path(tempfile.mkstemp(dir="/tmp")[1])
        try:
            for private in (machines, Path("/tmp/artoo-new/note")):
                assert await task.workspace.write(private, b"private") == ()
                with task.workspace.files.open(private) as file:
                    assert file.read() == b"private"
                assert await task.says(f"cat {private}") == "private"
            assert machines.read_text("ascii") == ""
            with pytest.raises(SandboxError, match="nothing may be written there"):
                await task.workspace.write(Path("/etc/artoo"), b"")
        finally:
            machines.unlink()
    assert (either.project / "run.sh").read_text() == "old"


async def test_processes_share_the_workspace_over_several_calls(world: World) -> None:
    """A server started in one call answers in the next, and is stopped and named at the end."""
    (world.project / "index.html").write_text("hello")
    async with world.task() as task:
        await task.workspace.start(Command(("python3", "-m", "http.server", "8123")))
        script = "for i in $(seq 100); do curl -s localhost:8123/ && break; sleep 0.05; done"
        assert await task.says(script) == "hello"
        assert [one.id for one in await task.workspace.stop_processes()] == ["p1"]


async def test_a_sandbox_that_dies_is_reported_once_and_replaced(world: World) -> None:
    """The files stay, and the error names the processes that are gone."""
    async with world.task() as task:
        await task.says("echo kept > f")
        await task.workspace.start(Command(("sleep", "1000")))
        sandbox = task.workspace._sandbox  # pyright: ignore[reportPrivateUsage] - to kill it
        assert sandbox is not None
        bubblewrap = sandbox.launched.process.pid  # pyright: ignore
        supervisor = Path(f"/proc/{bubblewrap}/task/{bubblewrap}/children").read_text("ascii").split()[0]
        os.kill(int(supervisor), signal.SIGKILL)
        await until(lambda: not sandbox.alive)
        with pytest.raises(SandboxError, match="ended unexpectedly"):
            await task.bash("cat f")
        assert await task.says("cat f") == "kept\n"


async def test_two_processes_cannot_work_in_one_workspace(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one is told to wait, and may go on when the first has closed it."""
    monkeypatch.setattr(state, "PATIENCE_SECONDS", 0.1)
    async with world.task() as first:
        await first.says("echo 1 > f")
        async with world.task() as second:
            with pytest.raises(SandboxError, match="at work in another process"):
                await second.bash("cat f")
    async with world.task() as third:
        assert await third.says("cat f") == "1\n"


async def test_a_check_leaves_nothing(either: World) -> None:
    """What a check would change is reported, and neither workspace nor project has it."""
    (either.project / "a").write_text("a")
    async with either.task() as task:
        await task.says("echo b > b")
        trial = await task.workspace.try_out(Command(("bash", "-c", "cat a b; echo c > c; rm a; echo d >> b")), 30)
        assert trial.ended.stdout.text == "ab\n"
        assert {one.path.rpartition("/")[2]: one.kind for one in trial.changes} == {
            "a": ChangeKind.DELETED,
            "b": ChangeKind.OVERWRITTEN,
            "c": ChangeKind.CREATED,
        }
        assert await task.says("ls; cat b") == "a\nb\nb\n"


async def test_a_fork_has_files_and_a_sandbox_of_its_own(either: World) -> None:
    """It starts with what the task has done, and nothing of it reaches the task."""
    (either.project / "a").write_text("a")
    async with either.task() as task:
        await task.says("echo b > b; rm a")
        fork = await task.workspace.fork("second")
        ended = await fork.run(Command(("bash", "-c", "ls; echo c > c")), 30)
        assert ended.stdout.text == "b\n"
        assert {one.path.rpartition("/")[2] for one in await fork.changes()} == {"a", "b", "c"}
        await task.workspace.discard_fork("second")
        assert await task.says("ls") == "b\n"
        assert not any((either.directory().base / "forks").iterdir())


async def test_a_task_continues_after_a_restart(either: World) -> None:
    """Its files are there before the first command, and process ids are not used twice."""
    (either.project / "a").write_text("a")
    async with either.task() as task:
        await task.says("echo b > b; rm a")
    async with either.task() as task:
        assert task.workspace.files.names(either.project) == ("b",)
        assert {one.path.rpartition("/")[2] for one in await task.workspace.changes()} == {"a", "b"}
        assert await task.says("ls") == "b\n"
        assert [one.id for one in task.workspace.processes] == ["p2"]


async def test_the_user_edits_files_while_the_task_works(either: World) -> None:
    """Each turn shows the user's files as they are; a path that both changed is reported and a conflict."""
    for name in ("edited", "both", "replaced"):
        (either.project / name).write_text("old")
    async with either.task() as task:
        await task.says("cat edited both replaced; ls missing 2>&1 | head -1; echo task >> both")
        (either.project / "edited").write_text("user")
        (either.project / "both").write_text("user")
        (either.project / "missing").write_text("made")
        (either.project / "new").write_text("user")
        os.replace(either.project / "new", either.project / "replaced")
        assert await task.workspace.refresh() == (str(either.project / "both"),)
        assert await task.workspace.refresh() == ()
        assert await task.says("cat edited replaced missing") == "userusermade"
        assert "task" in await task.says("cat both")
    found = either.change_set()
    assert [one.path for one in found.conflicts] == [str(either.project / "both")]
    assert not found.effects


async def test_what_both_changed_between_two_calls_is_a_conflict(world: World) -> None:
    """A background process wrote a file, and the user saved it, before the next call began."""
    (world.project / "f").write_text("old")
    async with world.task() as task:
        await task.workspace.write(world.project / "g", b"x")
        await task.workspace.refresh()
        await task.says("echo task >> f")
        (world.project / "f").write_text("user")
        mark = await task.workspace.mark()
        await task.says("echo y > g")
        await task.workspace.changes_since(mark)
    assert [one.path for one in world.change_set().conflicts] == [str(world.project / "f")]


async def test_a_file_that_was_applied_follows_the_user(either: World) -> None:
    """As after `--apply live`: the workspace shows the user's edit, nothing conflicts, and the task may go on."""
    (either.project / "page.html").write_text("old")
    async with either.task() as task:
        await task.says("echo task > page.html; echo task > again.html")
        found = either.change_set()
        report = commit.apply(found.effects, (), task_id="t", undo_home=either.artoo_home / "undo")
        rebase(either.directory(), [one.shown for one in found.effects])
        await task.says("echo more >> again.html")
        for name in ("page.html", "again.html"):
            (either.project / name).write_text("user")
        assert report.applied
        assert await task.workspace.refresh() == (str(either.project / "again.html"),)
        assert await task.says("cat page.html") == "user"
        await task.says("echo task >> page.html")
    found = either.change_set()
    assert [one.shown for one in found.effects] == [str(either.project / "page.html")]
    assert [one.path for one in found.conflicts] == [str(either.project / "again.html")]


async def test_concurrent_calls_are_allowed(world: World) -> None:
    """Parallel subtasks start commands and read changes at the same time."""
    async with world.task() as task:

        async def one(number: int) -> None:
            mark = await task.workspace.mark()
            await task.says(f"echo {number} > f{number}")
            assert any(f"/f{number}" in change.path for change in await task.workspace.changes_since(mark))

        await asyncio.gather(*(one(number) for number in range(8)))
        assert len(await task.workspace.changes()) == 8
