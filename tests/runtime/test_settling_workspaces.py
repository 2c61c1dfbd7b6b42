"""The end of real workspaces: what commands did is settled, kept, applied in another process, undone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "workspace"))
from git_projects import COMMITS, run
from laid_out import snapshot
from task_world import Task, World, overlay

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.settling import ApplyMode, ChangeClass, Ending, Settled
from artoo.runtime.approvals.consent import Answers
from artoo.runtime.changes.find_pending import find_pending
from artoo.runtime.config.model import Config
from artoo.tools.approval.policy import Policies
from artoo.tools.settlement.settler import Settler
from artoo.workspace.commit import undo

TASK = "task-1"
GIT = "export GIT_AUTHOR_NAME=U GIT_AUTHOR_EMAIL=u@e GIT_COMMITTER_NAME=U GIT_COMMITTER_EMAIL=u@e; "


BRANCHES = "git for-each-ref refs/heads refs/tags refs/stash; git status --short"
"""What a user sees of a repository. Objects, reflogs and refs/artoo are kept when something is undone."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A home with a repository in its project."""
    home = tmp_path.resolve() / "home"
    (home / "project").mkdir(parents=True)
    (home / "artoo_workspace").mkdir()
    run(home / "project", COMMITS)
    return World(home, overlay())


class User:
    """The user's side with standing permissions, and nobody there."""

    def __init__(self, world: World, mode: ApplyMode, *lines: str) -> None:
        policies = Policies.parse(lines, world.project, world.home)
        self._answers = Answers(policies, None, mode, roots=world.roots)

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        return await self._answers.answer(request)


@pytest.fixture
def task(world: World) -> Task:
    """A task at work."""
    return Task(world.open(TASK))


async def end(task: Task, world: World, *lines: str, mode: ApplyMode = ApplyMode.NEW) -> Settled:
    """The task ends well."""
    settler = Settler(task.workspace, world.artoo_home, "the request", mode)
    return await settler.settle(Ending(task_id=TASK, directive="accept"), User(world, mode, *lines))


def config(world: World) -> Config:
    return Config().at_home(world.artoo_home)


def classes(settled: Settled) -> dict[str, ChangeClass]:
    return {one.path: one.change_class for one in settled.changes}


async def test_a_new_commit_with_its_files_is_silent(task: Task, world: World) -> None:
    """Made in the workspace by git itself, applied unasked, and git finds nothing wrong afterwards."""
    await task.says(GIT + "echo x > new.py; git add new.py; git commit -qm new")
    settled = await end(task, world)
    assert settled.state == "applied", [one for one in settled.changes if one.reason]
    assert run(world.project, "git log -1 --format=%s; git fsck --no-dangling; git status --short") == "new\n"


async def test_amended_history_waits_for_a_line_of_its_own(task: Task, world: World) -> None:
    """`--apply edits` does not cover it; the named line does; undo brings the commit back."""
    before = run(world.project, BRANCHES)
    await task.says(GIT + "git commit -q --amend -m better")
    settled = await end(task, world, mode=ApplyMode.EDITS)
    assert settled.state == "pending"
    reasons = {one.reason for one in settled.changes if one.change_class is ChangeClass.HISTORY}
    assert any("do not follow the old ones" in reason for reason in reasons)
    assert run(world.project, BRANCHES) == before
    await find_pending(config(world), TASK).apply()
    assert "better" in run(world.project, "git log --format=%s")
    undo(world.artoo_home, TASK)
    assert run(world.project, BRANCHES) == before


async def test_a_task_goes_on_after_a_part_was_applied(task: Task, world: World) -> None:
    """What it writes afterwards never reaches the applied file by itself."""
    await task.says("echo edited > f1; rm f2")
    await end(task, world)
    await find_pending(config(world), TASK).apply([str(world.project / "f1")])
    again = Task(world.open(TASK))
    assert await again.says("cat f1") == "edited\n"
    await again.says("echo more >> f1")
    assert (world.project / "f1").read_text() == "edited\n"
    settled = await end(again, world, mode=ApplyMode.EDITS)
    assert settled.state == "pending" and set(classes(settled).values()) == {ChangeClass.EDIT, ChangeClass.DELETION}
    assert settled.conflicts == ()


async def test_edits_take_effect_at_every_turn(task: Task, world: World) -> None:
    """`--apply live`: ordinary changes at once, the deletion at the end by approval, one undo for all of it."""
    before = snapshot(world.project)
    settler = Settler(task.workspace, world.artoo_home, "the request", ApplyMode.LIVE)
    await task.says("echo 1 > page.html; rm f2")
    assert await settler.settle_live() == (f"{world.project}/page.html",)
    assert (world.project / "page.html").read_text() == "1\n" and (world.project / "f2").exists()
    await task.says("echo 2 > page.html; echo edited > f1")
    assert set(await settler.settle_live()) == {f"{world.project}/page.html", f"{world.project}/f1"}
    assert (world.project / "page.html").read_text() == "2\n"
    assert await settler.settle_live() == ()
    settled = await settler.settle(Ending(task_id=TASK, directive="accept"), User(world, ApplyMode.LIVE))
    assert settled.state == "partly" and set(settled.applied) == {
        f"{world.project}/page.html",
        f"{world.project}/f1",
    }
    assert [one.path for one in settled.changes] == [f"{world.project}/f2"]
    assert (await find_pending(config(world), TASK).apply()).state == "applied"
    assert not (world.project / "f2").exists()
    assert undo(world.artoo_home, TASK).refused == ()
    assert snapshot(world.project) == before


async def test_all_covers_project_and_output_folder_and_nothing_else(world: World) -> None:
    """`--apply all` approves deletions and modes there; a file elsewhere keeps the whole change set pending."""
    inside, outside = Task(world.open(TASK)), Task(world.open("task-2"))
    await inside.says("rm f2; echo 'echo hi' > run.sh; chmod 755 run.sh")
    assert (await end(inside, world, mode=ApplyMode.ALL)).state == "applied"
    assert not (world.project / "f2").exists() and (world.project / "run.sh").stat().st_mode & 0o111
    await outside.says("rm f4; echo x > ~/elsewhere.txt")
    settler = Settler(outside.workspace, world.artoo_home, "the request", ApplyMode.ALL)
    ending = Ending(task_id="task-2", directive="accept")
    assert (await settler.settle(ending, User(world, ApplyMode.ALL))).state == "pending"
    assert (world.project / "f4").exists()
