"""Views where no overlay can be had: commands work in a copy, and the view is the same to everybody else."""

from __future__ import annotations

from pathlib import Path

import pytest
from sandbox_snapshots import snapshot
from sandbox_world import World, first, require_tier
from view_world import bash, out, place_of

from artoo.contracts.changes import ChangeKind
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import ActNote, Limits
from artoo.ports.world import Program, View
from artoo.world.copied import CopyRunner
from artoo.world.mirror import CopyLimits
from artoo.world.opening import OpenedViews, views_in
from artoo.world.readonly import ReadOnlyFirst
from artoo.world.scan import scan
from artoo.world.transaction import apply_effects
from artoo.world.unconfined import AskForEverything


@pytest.fixture
def copied(world: World) -> View:
    """A task's view under Landlock."""
    return views_in(_landlock(world), world.artoo_home)("task-1", world.roots)


def _landlock(world: World) -> ReadOnlyFirst:
    require_tier("landlock")
    world.artoo_home.mkdir(mode=0o700, exist_ok=True)
    candidate = first("landlock", world.artoo_home)
    sandbox = candidate.build(candidate.stage_homes)
    assert isinstance(sandbox, ReadOnlyFirst)
    return sandbox


async def test_commands_work_in_a_copy(copied: View, world: World) -> None:
    """Made, edited, deleted, swapped: seen by the next command and by readers, and nothing of it is real."""
    for name in ("old", "gone", "swap"):
        (world.project / name).write_text("real\n")
    (world.project / "tree" / "deep").mkdir(parents=True)
    (world.project / "tree" / "deep" / "leaf").write_text("leaf\n")
    before = snapshot(world.home, times=True, identity=True)
    run = await bash(copied, "echo 1 >> old; rm gone swap; mkdir swap; echo x > swap/x; rm -r tree; ln -s old link")
    kinds = {change.path.removeprefix(f"{world.project}/"): change.kind for change in run.changes}
    assert (run.status, run.needs_confirmation) == ("ok", False)
    assert kinds == {
        "old": ChangeKind.OVERWRITTEN,
        "gone": ChangeKind.DELETED,
        "swap": ChangeKind.OVERWRITTEN,
        "swap/x": ChangeKind.CREATED,
        "tree": ChangeKind.DELETED,
        "tree/deep": ChangeKind.DELETED,
        "tree/deep/leaf": ChangeKind.DELETED,
        "link": ChangeKind.LINK,
    }
    assert await out(copied, "cat old link swap/x; ls -A; pwd") == (
        f"real\n1\nreal\n1\nx\nlink\nold\nswap\n{world.project}\n"
    )
    assert copied.files.names(world.project) == ("link", "old", "swap")
    assert snapshot(world.home, times=True, identity=True) == before
    effects = scan(place_of(world).trunk(), 1000)
    undo_home = world.artoo_home / "undo"
    assert apply_effects(effects, task_id="task-1", undo_home=undo_home).applied
    assert (world.project / "old").read_text() == "real\n1\n"
    assert not (world.project / "tree").exists()


async def test_absolute_paths_mean_the_copy(copied: View, world: World) -> None:
    """A command that names the project by its real path works in the copy, and prints the real path."""
    run = await bash(copied, f"echo x > {world.project}/made; ls {world.project}/made; cat nothing")
    assert run.stdout.text == f"{world.project}/made\n"
    assert [change.path for change in run.changes] == [f"{world.project}/made"]
    assert not (world.project / "made").exists()


async def test_the_copy_follows_the_person(copied: View, world: World) -> None:
    """What the person edits, adds or removes between two commands is seen by the second."""
    (world.project / "a").write_text("a\n")
    (world.project / "b").write_text("b\n")
    assert await out(copied, "cat a b") == "a\nb\n"
    (world.project / "a").write_text("A\n")
    (world.project / "b").unlink()
    (world.project / "c").write_text("c\n")
    assert await out(copied, "cat a c; ls") == "A\nc\na\nc\n"


async def test_a_stopped_command_is_dropped(copied: View, world: World) -> None:
    """What a command did until its time limit is gone from the copy."""
    (world.project / "a").write_text("a\n")
    run = await bash(copied, "echo x > a; rm -f b; sleep 30", limits=Limits(wall_seconds=1.0))
    assert (run.status, run.changes) == ("timeout", ())
    assert await out(copied, "cat a") == "a\n"


async def test_forks_of_copies(copied: View) -> None:
    """Forks and joins are those of any view."""
    await bash(copied, "echo t > t")
    one, two = copied.fork("one"), copied.fork("two")
    await bash(one, "echo 1 > f")
    await bash(two, "echo 2 > f; rm t")
    assert len(await copied.join(["one", "two"])) == 1
    assert await out(copied, "cat f; ls") == "1\nf\n"


async def test_outside_the_copy_is_read_only(copied: View, world: World, tmp_path: Path) -> None:
    """What is refused outside the copy is told, and asked about."""
    run = await bash(copied, f"echo x > {tmp_path}/outside")
    assert (run.status, run.needs_confirmation) == ("error", True)
    assert not (tmp_path / "outside").exists()


async def test_too_large_a_project_is_refused(world: World) -> None:
    """A project beyond the bound of a copy is an error that says what to do."""
    for number in range(20):
        (world.project / str(number)).touch()
    runner = CopyRunner(_landlock(world), world.artoo_home, CopyLimits(paths=10))
    with pytest.raises(SandboxError, match="smaller --project"):
        await bash(OpenedViews(runner, world.artoo_home)("task-1", world.roots), "true")


async def test_without_a_sandbox_each_command_is_asked_about(world: World) -> None:
    """The tier `none` runs nothing unasked, and what was confirmed works in the copy."""
    world.artoo_home.mkdir()
    view = views_in(AskForEverything(world.artoo_home), world.artoo_home)("task-1", world.roots)
    run = await bash(view, "echo x > made")
    assert (run.status, run.needs_confirmation, run.changes) == ("refused", True, ())
    note = ActNote("act", "digest", "done")
    run = await view.run(Program(("bash", "-c", "echo x > made"), unconfined=True, note=lambda run: note))
    assert [change.path for change in run.changes] == [f"{world.project}/made"]
    assert await view.notes() == {"act": note}
    assert not (world.project / "made").exists()
