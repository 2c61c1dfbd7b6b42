"""What git brings over: silent where it loses nothing, history where it does, decided by git's own answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_projects import COMMITS, TOLD, Task, run
from laid_out import World

from artoo.contracts.settling import ChangeClass, counts_of


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A project that is a repository with branches, tags and two stashes."""
    world = World.at(tmp_path)
    run(world.project, COMMITS)
    return world


SILENT = [
    "echo x > new; git add new; git commit -qm four",
    "git status; git log --oneline; git diff; git fsck",
    "git checkout -q -b fresh; echo y > y; git add y; git commit -qm five; git checkout -q main",
    "git checkout -q -b fresh; echo y > y; git add y; git commit -qm five; git commit -q --amend -m better;"
    "git checkout -q main",
    "git tag later; git tag -a -m x later2",
    "git merge -q --no-edit side",
    "git branch other side",
    "echo x > new; git add new; git stash -q; git stash pop -q",
    "git init -q inner; cd inner; echo a > a; git add a; git commit -qm a; git commit -q --amend -m b",
    "git clone -q . copy && cd copy && git reset -q --hard HEAD~1",
    "git worktree list; git gc --auto -q; git pack-refs --all; git repack -q -a -d",
    "git notes add -m n HEAD",
    "git rebase -q main",
    "git merge -q --ff-only main",
    "touch .git/index.lock .git/HEAD.lock; touch -d 2000-01-01 .git/objects/*/*",
    "echo '/elsewhere/objects' > .git/objects/info/alternates",
]

HISTORY = [
    "git commit -q --amend -m other",
    "git reset -q --hard HEAD~1",
    "git reset -q --soft HEAD~2",
    "git checkout -q -b fresh",
    "git checkout -q --detach",
    "git checkout -q side && git rebase -q main~2 && git rebase -q --root && git commit -q --amend -m z",
    "git branch -q -D side; git tag -d heavy",
    "git branch -q -D side",
    "git tag -f light main~2",
    "git tag -f -a -m other heavy side",
    "git tag -d heavy",
    "git tag side main~1",
    "git stash drop -q",
    "git stash drop -q stash@{1}",
    "git stash clear",
    "git stash pop -q",
    "git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now",
    "git stash clear; git gc -q --prune=now",
    "git update-ref refs/heads/main main~1",
    "git branch -f side main~2",
    "git branch -q -m side moved",
    "rm -rf .git",
    "rm -rf .git/refs .git/logs; mkdir .git/refs",
    "git replace main~1 side",
    "git update-ref refs/remotes/origin/main main",
    "git update-ref refs/anything main",
    "git rev-parse main~1 > .git/shallow",
    "git symbolic-ref HEAD refs/heads/none; git update-ref -d refs/heads/main",
    "git symbolic-ref refs/heads/alias refs/heads/main",
]

PENDING = [
    "truncate -s 40 .git/index",
    "echo not a commit > .git/refs/heads/main",
    "echo 1234567890123456789012345678901234567890 > .git/refs/heads/main",
    "git worktree add -q ../elsewhere side",
    "git checkout -q side; echo 5 > f4; git add f4; git commit -qm 5; git merge -q main || true",
    "git bisect start -q main main~2",
    "git checkout -qb x main~1; echo z > f4; git add .; git commit -qm z; git rebase -q main || true",
]


@pytest.mark.parametrize("script", PENDING)
def test_what_git_cannot_bring_over_stays_and_says_why(world: World, script: str) -> None:
    """A damaged repository, an unfinished operation, a new linked worktree: a conflict with its reason."""
    task = Task(world, script)
    assert any("workspace" in one.reason for one in task.found.all_conflicts)
    before = run(world.project, TOLD)
    for act in task.acts:
        assert act.refs == () or all(one.group != "HEAD" for one in act.refs)
    assert run(world.project, TOLD) == before


@pytest.mark.parametrize(
    "script",
    [
        "git reflog expire --expire=now HEAD main",
        "git prune --expire=now; rm -rf .git/logs/HEAD .git/logs/refs/heads",
    ],
)
def test_reflogs_and_objects_are_only_added_to(world: World, script: str) -> None:
    """What the task removed of them stays as the user has it."""
    before = run(world.project, f"{TOLD}; git reflog --all; find .git/objects -type f | sort")
    task = Task(world, script)
    task.apply()
    assert run(world.project, f"{TOLD}; git reflog --all; find .git/objects -type f | sort") == before


_NOT_WHOLE = ("shallow", "rm -rf", "reflog expire")
"""Applied as files, or not brought over: reflogs."""

_NAMES = "git for-each-ref --format='%(refname) %(objectname)' | grep -v refs/artoo || true"
_STANDS = (
    f"{_NAMES}; git symbolic-ref HEAD || git rev-parse HEAD; git stash list --format='%H %gs'; git ls-files -s"
)


@pytest.mark.parametrize("script", SILENT + HISTORY)
def test_what_loses_nothing_is_silent_and_undo_restores_everything(world: World, script: str) -> None:
    """All else needs approval by name. Refs, HEAD, index and stash are as the task left them, then as before."""
    before = run(world.project, _STANDS)
    task = Task(world, script)
    if script in SILENT:
        assert (task.loud(), task.found.all_conflicts) == ({}, ())
    else:
        assert task.history and all(one.reason for one in task.history)
    if any(word in script for word in _NOT_WHOLE):
        return
    wanted = run(task.inside / "project", _STANDS)
    task.apply()
    assert run(world.project, _STANDS) == wanted
    run(world.project, "git fsck --strict; git log --all --stat")
    assert run(world.project, "find .git -name '*.lock' -o -name 'index.artoo*'") == ""
    assert task.undo() == ()
    assert run(world.project, _STANDS) == before
    assert task.undo() == (), "a second undo does nothing"


@pytest.mark.parametrize(
    ("script", "branches", "tags", "commits"),
    [
        ("git tag -d light; git tag -d heavy; git branch -q -D side; git reset -q --hard HEAD~3", 2, 2, 2),
        ("git commit -q --amend -m other", 1, 0, 1),
        ("git branch -q -D side; git tag -d light; git tag -d heavy", 1, 2, 1),
        ("git tag -f light main~2", 0, 1, 0),
    ],
)
def test_what_is_lost_is_counted_by_names_and_commits(
    world: World, script: str, branches: int, tags: int, commits: int
) -> None:
    """A branch that is moved back is one branch, however many of git's files change with it."""
    found = Task(world, script).found.all_classes
    count = next(one for one in counts_of(found) if one.change_class is ChangeClass.HISTORY)
    assert (count.branches, count.tags, count.commits) == (branches, tags, commits)


def test_a_commit_is_shown_as_a_commit(world: World) -> None:
    """The path names the repository, and the words in brackets the branch, the number and the subject."""
    assert set(Task(world, "echo x > new; git add new; git commit -qm 'add new'").of_git) == {
        "main: 1 commit: add new"
    }
