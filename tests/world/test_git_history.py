"""What is history: git's own commands on real repositories, decided by what is reachable afterwards."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from git_scenes import COMMITS, TOLD, after, history, run
from layers import view_of
from sandbox_world import World

from artoo.contracts.settling import ChangeClass, counts_of
from artoo.world.difference import difference_of
from artoo.world.settle import apply_difference
from artoo.world.undo import Keep, prune, undo


@pytest.fixture
def world(world: World) -> World:
    """A project that is a repository with branches, tags and two stashes."""
    run(world.project, COMMITS)
    return world


SILENT = [
    "echo x > new; git add new; git commit -qm four",
    "git status; git log --oneline; git diff; git fsck",
    "git checkout -q -b fresh; echo y > y; git add y; git commit -qm five; git checkout -q main",
    "git checkout -q -b fresh; echo y > y; git add y; git commit -qm five; git commit -q --amend -m better",
    "git tag later; git tag -a -m x later2",
    "git merge -q --no-edit side",
    "git branch other side",
    "echo x > new; git add new; git stash -q; git stash pop -q",
    "git init -q inner; cd inner; echo a > a; git add a; git commit -qm a; git commit -q --amend -m b",
    "git clone -q . copy && cd copy && git reset -q --hard HEAD~1",
    "git worktree list; git reflog; git gc --auto -q",
    "git notes add -m n HEAD",
    "git rebase -q main",
    "git merge -q --ff-only main",
]

HISTORY = [
    "git commit -q --amend -m other",
    "git reset -q --hard HEAD~1",
    "git reset -q --soft HEAD~2",
    "git checkout -q side && git rebase -q main~2 && git rebase -q --root && git commit -q --amend -m z",
    "git checkout -q side; GIT_COMMITTER_DATE=2001-01-01T00:00:00 git rebase -q --root --no-ff",
    "git branch -q -D side; git tag -d heavy",
    "git branch -q -D side",
    "git tag -f light main~2",
    "git tag -f -a -m other heavy side",
    "git tag -d heavy",
    "git stash drop -q",
    "git stash drop -q stash@{1}",
    "git stash clear",
    "git stash pop -q",
    "git reflog expire --expire=now --all",
    "git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now",
    "git stash clear; git gc -q --prune=now",
    "git update-ref refs/heads/main main~1",
    "git branch -f side main~2",
    "git branch -q -m side moved",
    "rm -rf .git",
    "rm -rf .git/refs .git/logs; mkdir .git/refs",
    "rm -f .git/objects/pack/* ; rm -rf .git/objects/??",
    "echo 0000000000000000000000000000000000000000 > .git/refs/heads/main",
    "git gc -q; cd .git/objects/pack; chmod u+w *; printf x | dd of=$(ls *.pack) seek=1 conv=notrunc status=none",
    "git replace main~1 side; git update-ref -d refs/heads/side; git tag -d heavy",
    "echo '/elsewhere/objects' > .git/objects/info/alternates",
    "git rev-parse main~1 > .git/shallow",
    "git filter-branch -f --msg-filter 'sed s/number/no/' main 2>/dev/null",
    "git symbolic-ref HEAD refs/heads/none; git update-ref -d refs/heads/main",
]


@pytest.mark.parametrize("script", SILENT)
def test_what_loses_nothing_is_silent(world: World, script: str) -> None:
    """New objects, a commit on a branch, an index, a reflog that grows: none of it needs consent."""
    found = after(world, script)
    assert history(found) == set()
    inside = [one for one in found.classes if "/project/.git/" in one.path]
    assert {one.change_class for one in inside} <= {ChangeClass.SILENT}, inside


@pytest.mark.parametrize("script", HISTORY)
def test_what_git_cannot_give_back_is_history(world: World, script: str) -> None:
    """It needs consent, and the reason says what is lost."""
    found = after(world, script)
    assert history(found)
    assert not found.silent


@pytest.fixture
def merging(world: World) -> World:
    """A merge of `other` is under way, with a conflict in f1."""
    run(world.project, "git stash -q -u; git checkout -qb other main~3; echo o > f1; git commit -qam o")
    run(world.project, "git checkout -q main; echo m > f1; git commit -qam m; git merge -q other || true")
    assert (world.project / ".git/MERGE_HEAD").exists()
    return world


@pytest.mark.parametrize(
    "end", ["echo both > f1; git commit -qam both", "git checkout -q --ours f1; git commit -qam ours"]
)
def test_a_merge_that_is_committed_is_silent(merging: World, end: str) -> None:
    """The commit has as its parents what was being merged: nothing of git's is lost, only f1 is a question."""
    found = after(merging, end)
    assert history(found) == set()
    inside = [one for one in found.classes if "/project/.git/" in one.path]
    assert {one.change_class for one in inside} <= {ChangeClass.SILENT}, inside


@pytest.mark.parametrize(
    "end",
    [
        "git merge --abort",
        "rm .git/MERGE_*",
        "rm .git/MERGE_HEAD; echo x > f1; git commit -qam lone",
    ],
)
def test_a_merge_that_is_given_up_needs_consent_as_what_it_is(merging: World, end: str) -> None:
    """What goes can run nothing: it is history, and nothing of git is said to go on with it."""
    found = after(merging, end)
    assert "it ends an operation of git that was under way" in {
        reason.partition(":")[0] for reason in history(found)
    }
    assert not [one for one in found.classes if one.change_class is ChangeClass.PERSISTENCE]


def test_an_autostash_of_a_merge_is_not_dropped_unasked(merging: World) -> None:
    """It may be the only place in which somebody's changes are."""
    run(merging.project, "git rev-parse HEAD > .git/MERGE_AUTOSTASH")
    assert history(after(merging, "echo both > f1; git commit -qam both; rm -f .git/MERGE_AUTOSTASH"))


LOSSES = [
    "git commit -q --amend -m other",
    "git reset -q --hard HEAD~1",
    "git branch -q -D side; git tag -d heavy",
    "git reset -q --hard HEAD~1; git stash clear",
]


@pytest.mark.parametrize("script", LOSSES)
def test_what_was_lost_with_consent_keeps_a_name(world: World, script: str) -> None:
    """While it can be undone, git's own collecting does not take it."""
    place = view_of(world, lambda home: run(home / "project", script))
    found = difference_of(place, world.artoo_home)
    assert apply_difference(place, world.artoo_home, found, digest=found.digest).whole
    assert "refs/artoo/task-1/" in run(world.project, "git for-each-ref")
    run(world.project, "git reflog expire --expire=now --all; git gc -q --prune=now; git fsck")
    tips = [tip for lost in found.lost.values() for tip in lost.tips]
    assert tips
    run(world.project, "\n".join(f"git rev-list --objects {tip}" for tip in tips))
    for days in (0, 4):  # it must be found too old twice
        prune(world.artoo_home, Keep(days=-1.0), now=time.time() + days * 86_400)
    assert "refs/artoo" not in run(world.project, "git for-each-ref")


@pytest.mark.parametrize("script", LOSSES)
def test_undo_brings_the_old_commits_back(world: World, script: str) -> None:
    """Every name, reflog entry and stash is as it was, and no name of artoo's is left."""
    before = run(world.project, TOLD)
    place = view_of(world, lambda home: run(home / "project", script))
    found = difference_of(place, world.artoo_home)
    assert apply_difference(place, world.artoo_home, found, digest=found.digest).whole
    assert undo(world.artoo_home, "task-1").refused == ()
    assert run(world.project, TOLD) == before
    assert not (world.project / ".git/refs/artoo").exists()


def test_hooks_and_settings_of_a_repository_are_persistence(world: World) -> None:
    """They start programs, in a bare repository too; and a task's own settings cannot make git run anything."""
    run(world.project, "git init -q --bare bare.git")
    mark = world.home / "ran"
    found = after(
        world,
        "printf '#!/bin/sh\\n' > .git/hooks/post-commit; printf '#!/bin/sh\\n' > bare.git/hooks/update;"
        f"git config core.fsmonitor 'touch {mark}'; git config core.pager 'touch {mark}';"
        f"git config alias.rev-list '!touch {mark}'; git commit -q --allow-empty -m x",
    )
    persistent = {
        one.path.rpartition("project/")[2] for one in found.classes if one.change_class.value == "persistence"
    }
    assert {".git/hooks/post-commit", "bare.git/hooks/update", ".git/config"} <= persistent
    assert history(found) == set()
    mark.unlink(missing_ok=True)
    difference_of(view_of(world, lambda home: run(home / "project", "git tag one"), "task-2"), world.artoo_home)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("script", "path"),
    [
        ("git init -q sub; echo ../../evil > sub/.git/commondir", "sub/.git/commondir"),
        ("git init -q sub; git -C sub config core.fsmonitor ./evil", "sub/.git/config"),
        ("printf '#!/bin/sh\\n' > .git/hooks/pre-push", ".git/hooks/pre-push"),
        ("truncate -s 40 .git/index", ".git/index"),
    ],
)
def test_git_led_elsewhere_needs_consent(world: World, script: str, path: str) -> None:
    """New repositories that start programs, and an index that git could not have written, are no bookkeeping."""
    found = after(world, script)
    loud = [one.path for one in found.classes if one.change_class is not ChangeClass.SILENT]
    assert loud == [str(world.project / path)]


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
    count = next(one for one in counts_of(after(world, script).classes) if one.change_class is ChangeClass.HISTORY)
    assert (count.branches, count.tags, count.commits) == (branches, tags, commits)


_OF_NO_REPOSITORY = "mkdir modules lost-found; echo mine > modules/main.tf; echo mine > lost-found/found; "


@pytest.mark.parametrize(
    ("before", "script", "paths"),
    [
        (
            "",
            "mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; rm -rf modules",
            ["modules", "modules/main.tf"],
        ),
        (
            "mkdir objects; echo part > HEAD",
            "rm modules/main.tf lost-found/found",
            ["lost-found/found", "modules/main.tf"],
        ),
        ("mkdir objects; echo part > HEAD", "echo theirs > modules/main.tf", ["modules/main.tf"]),
    ],
)
def test_what_looks_like_a_repository_hides_no_loss(
    tmp_path: Path, before: str, script: str, paths: list[str]
) -> None:
    """A directory is judged as a repository only if git took it for one before the task."""
    world = World(tmp_path.resolve() / "home")
    world.project.mkdir(parents=True)
    run(world.project, _OF_NO_REPOSITORY + before)
    found = after(world, script)
    loud = [one.path for one in found.classes if one.change_class in (ChangeClass.DELETION, ChangeClass.EDIT)]
    assert loud == [str(world.project / path) for path in paths]


def test_ordinary_files_beside_a_file_named_head_are_silent(tmp_path: Path) -> None:
    """A name alone makes no repository, so that nothing new beside it is out of place."""
    world = World(tmp_path.resolve() / "home")
    world.project.mkdir(parents=True)
    run(world.project, "mkdir objects; echo part > HEAD")
    assert after(world, "echo x > new; mkdir -p src; echo y > src/new").silent


@pytest.mark.parametrize(
    "script",
    ["rm -rf .git/lost-found", "rm .git/COMMIT_EDITMSG", "rm -r .git/modules", "rm .git/lost-found/other/a"],
)
def test_what_a_person_may_have_written_is_not_scratch_when_it_goes(world: World, script: str) -> None:
    """Drafts, what a search for lost things found, what lies beside submodules: a deletion needs consent."""
    run(world.project, "mkdir -p .git/lost-found/other .git/modules; echo a > .git/lost-found/other/a")
    run(world.project, "echo draft > .git/COMMIT_EDITMSG; echo mine > .git/modules/notes")
    assert [one for one in after(world, script).classes if one.change_class is ChangeClass.DELETION]


def test_what_git_makes_again_goes_in_silence(world: World) -> None:
    """git itself removes these."""
    run(
        world.project,
        "git rev-parse HEAD | tee .git/ORIG_HEAD .git/FETCH_HEAD > .git/AUTO_MERGE; echo x > .git/gc.log",
    )
    assert after(world, "rm .git/ORIG_HEAD .git/FETCH_HEAD .git/AUTO_MERGE .git/gc.log").silent


def test_what_lies_in_gits_own_files_stays_part_of_their_repository(world: World) -> None:
    """A head and objects among the names of branches make no other repository of them."""
    fake = "mkdir .git/refs/objects; echo 'ref: refs/heads/x' > .git/refs/HEAD"
    found = after(world, f"{fake}; rm .git/refs/heads/side")
    assert [one.path for one in found.classes if "refs/heads/side is removed" in one.reason]


def test_a_head_for_hooks_that_wait_needs_consent(world: World) -> None:
    """With it git runs what an earlier task put beside it as ordinary files."""
    run(world.project, "mkdir -p data/hooks data/objects data/refs; printf '#!/bin/sh\\n' > data/hooks/post-update")
    found = after(world, "echo 'ref: refs/heads/main' > data/HEAD")
    assert [one.change_class for one in found.classes if one.path.endswith("HEAD")] == [ChangeClass.PERSISTENCE]


def test_new_objects_of_a_rewritten_branch_are_no_loss(world: World) -> None:
    """The names are told one by one; an object that came takes nothing away."""
    found = after(world, "git checkout -q side; git rebase -q main~1 && git commit -q --amend -m z")
    loud = {one.path.partition("/.git/")[2] for one in found.classes if one.change_class is ChangeClass.HISTORY}
    assert loud and not any(inner.startswith("objects/") for inner in loud)
    made = [one for one in found.classes if "/.git/objects/" in one.path]
    assert made and {one.change_class for one in made} == {ChangeClass.SILENT}
