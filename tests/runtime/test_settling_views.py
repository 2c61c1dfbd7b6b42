"""The end of real views: what commands did in the sandbox is settled, kept, applied in another process, undone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "world"))
from git_scenes import COMMITS, TOLD, run
from sandbox_snapshots import snapshot
from sandbox_world import World
from view_world import any_view, bash, out

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.settling import ApplyMode, ChangeClass, Ending, Settled
from artoo.ports.world import View
from artoo.runtime.answers import Answers
from artoo.runtime.config import Config
from artoo.runtime.pendings import find_pending, pendings
from artoo.tools.policy import Policies
from artoo.tools.settler import Settler
from artoo.world.undo import undo

__all__ = ["any_view"]

TASK = "task-1"
GIT = "export GIT_AUTHOR_NAME=U GIT_AUTHOR_EMAIL=u@e GIT_COMMITTER_NAME=U GIT_COMMITTER_EMAIL=u@e; "


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A home with a repository in its project."""
    home = tmp_path.resolve() / "home"
    (home / "project").mkdir(parents=True)
    (home / "artoo_workspace").mkdir()
    run(home / "project", COMMITS)
    return World(home)


class User:
    """The user's side with standing permissions, and nobody there."""

    def __init__(self, world: World, mode: ApplyMode, *lines: str) -> None:
        self._answers = Answers(Policies.parse(lines, world.project, world.home), None, mode)

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        return await self._answers.answer(request)


async def end(view: View, world: World, *lines: str, mode: ApplyMode = ApplyMode.NEW) -> Settled:
    """The task ends well."""
    settler = Settler(view, world.artoo_home, "the request", mode)
    return await settler.settle(Ending(task_id=TASK, directive="accept"), User(world, mode, *lines))


def config(world: World) -> Config:
    return Config().at_home(world.artoo_home)


def classes(settled: Settled) -> dict[str, ChangeClass]:
    return {one.path: one.change_class for one in settled.changes}


async def test_nothing_done_is_nothing_to_settle(any_view: View, world: World) -> None:
    """A task that only looked leaves no view and no record."""
    await out(any_view, "ls; git log --oneline; cat f1")
    assert (await end(any_view, world)).state == "none"
    assert pendings(config(world)) == () and not (world.artoo_home / "views" / TASK).exists()


async def test_a_new_commit_with_its_files_is_silent(any_view: View, world: World) -> None:
    """Made in the view by git itself, applied unasked, and git finds nothing wrong afterwards."""
    await out(any_view, GIT + "git checkout -q -b work; echo x > new.py; git add new.py; git commit -qm new")
    settled = await end(any_view, world)
    assert settled.state == "applied", [one for one in settled.changes if one.reason]
    assert run(world.project, "git log -1 --format=%s work; git fsck; git status --short") == "new\n"


async def test_an_edit_waits_and_another_process_applies_it(any_view: View, world: World) -> None:
    """Not a byte before consent; afterwards the edit, the renamed file and the commit are there."""
    before = snapshot(world.project)
    await out(
        any_view, GIT + "echo edited > f1; git mv f2 g2; git add -A; git commit -qm edits; echo log > out.log"
    )
    settled = await end(any_view, world)
    assert settled.state == "pending" and snapshot(world.project) == before
    assert {one.change_class for one in settled.changes} == {ChangeClass.EDIT, ChangeClass.SILENT}
    assert (await find_pending(config(world), TASK).apply()).state == "applied"
    assert (world.project / "f1").read_text() == "edited\n" and (world.project / "g2").exists()
    assert run(world.project, "git log -1 --format=%s; git status --short; git fsck") == "edits\n?? out.log\n"
    assert undo(world.artoo_home, TASK).refused == ()
    left = {path: entry for path, entry in snapshot(world.project).items() if not path.startswith(".git/objects/")}
    assert left == {path: entry for path, entry in before.items() if not path.startswith(".git/objects/")}


async def test_apply_edits_lets_an_edit_take_effect(any_view: View, world: World) -> None:
    """As somebody who trusts undo has said beforehand."""
    await out(any_view, "sed -i s/1/one/ f1; python3 -c \"open('f2','a').write('more')\"")
    assert (await end(any_view, world, mode=ApplyMode.EDITS)).state == "applied"
    assert (world.project / "f1").read_text() == "one\n"


async def test_amended_history_waits_for_a_line_of_its_own(any_view: View, world: World) -> None:
    """`--apply edits` does not cover it; the named line does; undo brings the commit back."""
    before = run(world.project, TOLD)
    await out(any_view, GIT + "git commit -q --amend -m better")
    settled = await end(any_view, world, mode=ApplyMode.EDITS)
    assert settled.state == "pending"
    reasons = {one.reason for one in settled.changes if one.change_class is ChangeClass.HISTORY}
    assert any("number 4" in reason for reason in reasons)
    assert run(world.project, TOLD) == before
    await find_pending(config(world), TASK).apply()
    assert "better" in run(world.project, "git log --format=%s")
    undo(world.artoo_home, TASK)
    assert run(world.project, TOLD) == before


async def test_work_goes_on_in_a_view_of_which_a_part_was_applied(any_view: View, world: World) -> None:
    """What is written in it afterwards never reaches the applied file by itself."""
    await out(any_view, "echo edited > f1; rm f2")
    await end(any_view, world)
    await find_pending(config(world), TASK).apply([str(world.project / "f1")])
    assert await out(any_view, "cat f1") == "edited\n"
    await out(any_view, "echo more >> f1")
    assert (world.project / "f1").read_text() == "edited\n"
    settled = await end(any_view, world, mode=ApplyMode.EDITS)
    assert settled.state == "pending" and set(classes(settled).values()) == {ChangeClass.EDIT, ChangeClass.DELETION}
    assert settled.conflicts == ()


async def test_a_thousand_new_files_are_quick_to_read(any_view: View, world: World) -> None:
    """All silent, all there, counted whole."""
    ended = await bash(any_view, "mkdir many; cd many; for i in $(seq 1000); do echo $i > $i; done")
    assert ended.status == "ok"
    settled = await end(any_view, world)
    assert settled.state == "applied" and settled.counts[0].count == 1_001 and settled.unlisted == 1
    assert len(list((world.project / "many").iterdir())) == 1_000


async def stopped(view: View, world: World, *, may_go_on: bool) -> Settled:
    """The task is abandoned with two parts under way, and a trial in the middle."""
    one, two, trial = view.fork("part 1"), view.fork("part 2"), view.fork("part 1 trial")
    await out(one, "echo 1 > both; echo 1 > one")
    await out(two, "echo 2 > both; echo 2 > two; rm f1")
    await out(trial, "echo 3 > tried")
    settler = Settler(view, world.artoo_home, "the request")
    return await settler.settle(Ending(task_id=TASK, directive="abandon", may_go_on=may_go_on), None)


async def test_parts_that_an_abandoned_task_left_unfinished_wait(any_view: View, world: World) -> None:
    """All of them, whole; of what two left differently the reason tells; what a trial did is nobody's."""
    settled = await stopped(any_view, world, may_go_on=False)
    assert settled.state == "pending"
    assert {one.path.removeprefix(f"{world.project}/") for one in settled.changes} == {"both", "one", "two", "f1"}
    assert f"the earlier part's version is kept: {world.project}/both" in settled.reason
    assert (await find_pending(config(world), TASK).apply()).state == "applied"
    assert (world.project / "both").read_text() == "1\n" and not (world.project / "f1").exists()


async def test_parts_of_a_task_that_may_go_on_are_left_to_it(any_view: View, world: World) -> None:
    """Nothing of them is joined: resumed, each goes on where it was."""
    assert (await stopped(any_view, world, may_go_on=True)).state == "none"
    assert await out(any_view.fork("part 2"), "cat both; ls one f1 2>&1 | wc -l") == "2\n2\n"


async def test_what_the_parts_of_a_cut_off_task_did_is_looked_at(any_view: View, world: World) -> None:
    """It stands in forks, and the look joins none of them: the task can still go on there."""
    await out(any_view, "echo whole > whole")
    one = any_view.fork("part 1")
    await out(one, "rm f1; echo new > new; echo edited > whole")
    await out(any_view.fork("part 1 trial"), "echo 3 > tried")
    await any_view.close()
    (waiting,) = pendings(config(world))
    assert waiting.cut_off
    review = await waiting.diff()
    told = [(one.change_class.value, one.path.removeprefix(f"{world.project}/")) for one in review.changes]
    assert told == [("deletion", "f1"), ("edit", "whole"), ("silent", "new"), ("silent", "whole")]
    assert [one.diff[-1:] for one in review.changes if one.path.endswith("new")] == [("+new",)]
    assert sum(each.count for each in review.counts) == 4
    assert await out(any_view.fork("part 1"), "cat new whole") == "new\nedited\n"


async def test_what_the_parts_of_a_cut_off_task_are_in_conflict_with(any_view: View, world: World) -> None:
    """What the person changed meanwhile is told as what it is, and not as overwritten."""
    for name in ("kept", "gone", "own"):
        (world.project / name).write_text("base\n")
    run(world.project, "git init -q -b main .; git add -A; git commit -qm base")
    git = "git -c user.name=u -c user.email=u@localhost"
    await out(any_view, "echo task >> own")
    one = any_view.fork("part 1")
    await out(one, f"echo part >> kept; rm gone; echo part >> own; echo n > new; {git} commit -qam part")
    run(world.project, "echo person >> kept; echo person >> gone; git commit -qam person")
    await any_view.close()
    (waiting,) = pendings(config(world))
    review = await waiting.diff()
    clashing = {one.path.removeprefix(f"{world.project}/") for one in review.conflicts}
    assert {"kept", "gone", ".git/refs/heads/main", ".git/index"} <= clashing
    assert {one.change_class.value for one in review.changes} == {"edit", "silent"}
    changed = {one.path.removeprefix(f"{world.project}/") for one in review.changes}
    assert {"own", "new"} <= changed and not changed & clashing - {"own"}
    assert await out(any_view.fork("part 1"), "cat new kept") == "n\nbase\npart\n"
