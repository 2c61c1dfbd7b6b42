"""What git has of a change is applied in one piece: what is in conflict in it holds the rest of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from git_scenes import ENVIRONMENT, TWO_FILES, WHOLE, history, run
from layers import view_of
from sandbox_world import World
from view_world import out, place_of

from artoo.contracts.changes import Change, Conflict
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ChangeClass
from artoo.ports.world import View
from artoo.world.closing import opened
from artoo.world.difference import Difference, difference_of
from artoo.world.git_unit import moved_entries
from artoo.world.undo import undo
from artoo.world.view_place import ViewPlace

TASK = "echo x >> f; echo n > n; git add .; git commit -qm task; echo u > u"


@pytest.fixture
def world(world: World) -> World:
    """A project that is a repository."""
    run(world.project, TWO_FILES)
    return world


def waiting(world: World, script: str = TASK) -> ViewPlace:
    return view_of(world, lambda home: run(home / "project", script))


def difference(world: World, place: ViewPlace) -> Difference:
    return difference_of(place, world.artoo_home)


def apply(world: World, place: ViewPlace, *paths: str) -> None:
    """The paths, or all that is not in conflict."""
    chosen = [str(world.project / path) for path in paths] or None
    with opened(place, world.artoo_home) as view:
        found = view.difference()
        assert view.apply(found, digest=found.digest, paths=chosen).report.applied
    run(world.project, WHOLE)


def inner(world: World, listed: Sequence[Change | Conflict]) -> set[str]:
    found = {str(Path(one.path).relative_to(world.project)) for one in listed}
    return {path for path in found if "/objects/" not in path}


MEANWHILE = {
    "staged": "echo z >> g; git add g",
    "committed": "echo z >> g; git commit -qam mine",
    "moved": "git checkout -q -b other",
    "edited": "echo mine >> f",
}


@pytest.mark.parametrize("name", MEANWHILE)
def test_a_conflict_in_a_repository_holds_all_of_the_commit(world: World, name: str) -> None:
    """The rest is what git has nothing of, and objects: the person's next commit takes nothing of the task back."""
    place = waiting(world)
    run(world.project, MEANWHILE[name])
    before = run(world.project, "git rev-parse HEAD; git status --short; git diff; git diff --cached")
    found = difference(world, place)
    assert inner(world, found.changes) - {".git/COMMIT_EDITMSG", ".git/objects"} == {"u"}
    (told,) = (one.reason for one in found.conflicts if one.path.endswith(".git/refs/heads/main"))
    apply(world, place)
    now = run(world.project, "rm u; git rev-parse HEAD; git status --short; git diff; git diff --cached")
    assert now == before
    run(world.project, "git stash -q || true")
    run(world.project, told.partition("applied, ")[2].partition(" takes over")[0])
    assert run(world.project, "cat n; tail -1 f") == "n\nx\n"


def test_what_git_has_nothing_of_is_not_held(world: World) -> None:
    """Edits that the task neither staged nor committed can be applied beside a conflict in the index."""
    place = waiting(world, "echo x >> f; echo n > n; git add n")
    run(world.project, "echo z >> g; git add g")
    found = difference(world, place)
    assert inner(world, found.changes) == {"f"}, "objects without a commit are of no use"
    apply(world, place)
    assert run(world.project, "git status --short") == " M f\nM  g\n"


@pytest.mark.parametrize("path", [".git/refs/heads/main", ".git/index", ".git/logs", ".git"])
def test_a_part_of_it_brings_all_of_it(world: World, path: str) -> None:
    """A name goes with its objects, index and files; what git has nothing of waits."""
    place = waiting(world, f"git tag t; {TASK}")
    apply(world, place, path)
    assert run(world.project, "git log --format=%s main; git status --short") == "task\nbase\n"
    assert inner(world, difference(world, place).changes) - {".git/COMMIT_EDITMSG"} == {"u"}


def test_a_file_alone_brings_nothing(world: World) -> None:
    """It is an edit like any other; the rest follows it without a conflict."""
    place = waiting(world)
    apply(world, place, "f")
    assert run(world.project, "git log --format=%s; git status --short") == "base\n M f\n"
    apply(world, place)
    assert run(world.project, "git log --format=%s; git status --short") == "task\nbase\n?? u\n"


def test_objects_that_are_packed_go_with_their_pack(world: World) -> None:
    """Removing loose ones alone would leave names without objects."""
    (loose,) = run(world.project, "git rev-parse HEAD:f").split()
    place = waiting(world, "git gc -q")
    apply(world, place, f".git/objects/{loose[:2]}/{loose[2:]}")


def test_an_index_that_cannot_be_read_here_may_say_anything(world: World) -> None:
    """Then every file of the worktree counts."""
    old = (world.project / ".git/index").read_bytes()
    assert not moved_entries(old, old)(b"f")
    assert moved_entries(None, old)(b"f") and not moved_entries(None, old)(b"other")
    run(world.project, "git update-index --index-version 4")
    assert moved_entries(old, (world.project / ".git/index").read_bytes())(b"other")


# --- times -----------------------------------------------------------------------------------------------------


def test_a_look_of_the_tasks_is_no_change(world: World) -> None:
    """An index that `git status` wrote anew is not among what the task changed, whatever the person staged."""
    place = waiting(world, "touch -d 2001-01-01 f; GIT_OPTIONAL_LOCKS=1 git status; echo n > n")
    run(world.project, "echo z >> g; git add g")
    found = difference(world, place)
    assert inner(world, found.changes) == {"f", "n"}
    assert found.conflicts == ()


def test_times_alone_are_in_nobodys_way(world: World) -> None:
    """A file that the task put back as it was is the person's to save."""
    place = waiting(world, "echo x > f; git stash -q; git stash pop -q; git checkout -q f; touch -d 2001-01-01 f")
    (world.project / "f").write_text("saved\n")
    assert "f" not in inner(world, difference(world, place).conflicts)
    assert "f" not in inner(world, difference(world, place).changes)


def test_the_draft_of_a_message_is_no_conflict(world: World) -> None:
    """What git writes for itself and makes again stays as the person's git left it."""
    place = waiting(world, "git tag -a -m t t; echo m > .git/COMMIT_EDITMSG")
    (world.project / ".git/COMMIT_EDITMSG").write_text("mine\n")
    assert difference(world, place).conflicts == ()


# --- without reflogs -------------------------------------------------------------------------------------------


def test_a_repository_without_reflogs_loses_nothing_by_a_commit(world: World) -> None:
    """Neither a commit nor a push to a bare one is history."""
    run(world.project, "git config core.logAllRefUpdates false; rm -rf .git/logs; git clone -q --bare . ../remote")
    assert not os.path.exists(world.home / "remote" / "logs")
    place = waiting(world, f"git checkout -q .; {TASK}; git push -q ../remote main")
    found = difference(world, place)
    assert [one.reason for one in found.classes if one.change_class is ChangeClass.HISTORY] == []


def test_what_a_running_git_holds_is_not_replaced(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by an act nor by its undo; when git has ended both go on."""
    monkeypatch.setattr("artoo.world.git_busy._PATIENCE_SECONDS", 0.1)
    place = waiting(world)
    lock = world.project / ".git/index.lock"
    index = (world.project / ".git/index").read_bytes()
    for act in (lambda: apply(world, place), lambda: undo(world.artoo_home, place.task_id)):
        before = (world.project / ".git/index").read_bytes()
        lock.touch()
        with pytest.raises(SandboxError, match=r"index\.lock"):
            act()
        assert (world.project / ".git/index").read_bytes() == before
        lock.unlink()
        act()
    assert (world.project / ".git/index").read_bytes() == index


# --- whether the task's commits can be taken over --------------------------------------------------------------

BENEATH = {
    "a file": ("echo x >> f", "echo mine >> f; git commit -qam mine", "git commit -qam task"),
    "the index": ("echo n > n; git add n", "echo mine >> f; git commit -qam mine", "git commit -qm task"),
    "more than once": (
        "echo x >> f",
        "echo mine >> f; git commit -qam mine",
        "git commit -qam task; cd ../real; echo z >> g; git commit -qam later",
    ),
}


@pytest.mark.parametrize("name", BENEATH)
async def test_no_command_is_offered_that_takes_commits_back(view: View, world: World, name: str) -> None:
    """The task's commit follows the person's, with the file as the task had it before."""
    first, meanwhile, then = BENEATH[name]
    then, _, later = then.partition("; cd ../real; ")
    named = "; ".join(f"export {key}={value}" for key, value in ENVIRONMENT.items() if key != "PATH")
    await out(view, f"{named}; {first}")
    run(world.project, meanwhile)
    await out(view, f"{named}; {then}")
    run(world.project, later or "true")
    await view.close()
    told = branch_in_conflict(difference_of(place_of(world), world.artoo_home))
    assert "cherry-pick" not in told and "may take back" in told
    with opened(place_of(world), world.artoo_home) as closing:
        found = closing.difference()
        assert closing.apply(found, digest=found.digest).report.applied
    shown = run(world.project, told.partition("applied, ")[2].partition(" shows")[0])
    assert "task" in shown
    assert "-mine" in shown, "it would have"


REWRITTEN = {
    "amended": "echo x >> f; git commit -q --amend -am task",
    "taken apart": "git reset -q --soft HEAD~1; git commit -qm one f; git commit -qm two g",
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_rewritten_history_is_no_cherry_pick(world: World, name: str) -> None:
    """What it was made of is there already: the pick would stop in the middle."""
    run(world.project, "echo b >> f; echo h >> g; git commit -qam second")
    place = waiting(world, REWRITTEN[name])
    run(world.project, "echo z >> g; git commit -qam mine")
    told = branch_in_conflict(difference(world, place))
    assert "cherry-pick" not in told and "may take back" in told


def branch_in_conflict(found: Difference) -> str:
    (told,) = (one.reason for one in found.conflicts if one.path.endswith(".git/refs/heads/main"))
    return told


# --- what git tidies up by itself ------------------------------------------------------------------------------


@pytest.mark.parametrize("branch", ["main", "of/mine"])
def test_packing_is_in_nobodys_way(world: World, branch: str) -> None:
    """`git gc` puts names among the packed ones, and removes the directories that are empty then."""
    run(
        world.project,
        f"git branch -m {branch}; for n in $(seq 120); do echo $n > g; git add g; done; git commit -qm g",
    )
    place = waiting(world, f"{TASK}; git tag t")
    run(world.project, "git gc -q --prune=now")
    assert not (world.project / f".git/refs/heads/{branch}").exists()
    found = difference(world, place)
    assert (found.conflicts, history(found)) == ((), set())
    apply(world, place)
    assert run(world.project, "git log --format=%s; git status --short") == "task\ng\nbase\n?? u\n"
    undo(world.artoo_home, place.task_id)
    assert run(world.project, f"git log --format=%s; git status --short; {WHOLE}") == "g\nbase\n"


@pytest.mark.parametrize("meanwhile", ["git branch -qD side", "git branch -qf side HEAD~1; git pack-refs --all"])
def test_a_name_that_was_removed_or_moved_is_a_conflict(world: World, meanwhile: str) -> None:
    """Also where it stands among the packed ones at another commit."""
    run(world.project, "echo b >> f; git commit -qam second; git branch side")
    place = waiting(world, "git checkout -q side; echo n > n; git add n; git commit -qm task")
    run(world.project, meanwhile)
    assert ".git/refs/heads/side" in inner(world, difference(world, place).conflicts)
