"""The user works on while a task does, and after it: nothing that the user's git state needs goes away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from git_projects import Task, run
from laid_out import World

from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ChangeClass
from artoo.workspace.git.act import forget, move, move_back
from artoo.workspace.git.state import GitAct

TASK = "echo n > n; git add n; git commit -qm task"
STATE = "git rev-parse HEAD; git symbolic-ref HEAD; git status --short; git ls-files -s; git stash list"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World.at(tmp_path)
    run(
        world.project,
        "git init -q -b main .; echo a > f; echo g > g; git add -A; git commit -qm base; git branch side",
    )
    return world


# --- meanwhile ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("meanwhile", "task"),
    [
        ("git commit -q --allow-empty -m mine", TASK),
        ("git checkout -q -b mine", f"git checkout -q -b other; {TASK}"),
        ("echo m > n; git add n", TASK),
        ("echo mine > f", "echo theirs > f; git commit -qam f"),
        ("git branch -f side side~0; git update-ref refs/heads/side $(git commit-tree side^{tree} -p side -m mine)",
         "git update-ref refs/heads/side $(git commit-tree side^{tree} -p side -m task)"),
        ("echo m > f; git stash -q", "echo t > g; git stash -q"),
        ("git branch topic", "git branch topic/one"),
        ("git tag topic/one", "git tag topic"),
    ],
)  # fmt: skip
def test_what_the_user_moved_meanwhile_is_a_conflict(world: World, meanwhile: str, task: str) -> None:
    """The user's version stays; the reason says what was moved."""
    done = Task(world, task)
    run(world.project, meanwhile)
    before = run(world.project, STATE)
    assert [
        one
        for one in done.look().all_conflicts
        if "meanwhile" in one.reason or "while" in one.reason or one.path.endswith("f")
    ]
    for act in done.acts:
        move(act)
    assert run(world.project, STATE) == before


@pytest.mark.parametrize(
    "meanwhile",
    ["git status", "touch f; git status", "git branch mine; git tag mine", "git gc -q", "echo m > m; git add m",
     "git commit-tree HEAD^{tree} -m x", "git fetch -q . main:refs/heads/fetched"],
)  # fmt: skip
def test_what_does_not_touch_the_tasks_changes_is_no_conflict(world: World, meanwhile: str) -> None:
    """A look that writes the index again, other branches, packing, other staged files: all of it stays."""
    task = Task(world, TASK)
    run(world.project, meanwhile)
    staged = run(world.project, "git diff --cached --name-only")
    assert task.look().all_conflicts == ()
    task.apply()
    assert run(world.project, "git log -1 --format=%s; git diff --cached --name-only") == f"task\n{staged}"


def test_a_ref_that_moves_after_approval_is_never_overwritten(world: World) -> None:
    """The act refuses, and nothing of it is applied."""
    task = Task(world, f"{TASK}; git branch new")
    run(world.project, "git commit -q --allow-empty -m mine")
    before = run(world.project, f"{STATE}; git for-each-ref refs/heads")
    with pytest.raises(SandboxError, match="moved"):
        move(task.acts[0])
    assert run(world.project, f"{STATE}; git for-each-ref refs/heads") == before


def test_a_git_that_is_at_work_is_waited_for_by_nobody(world: World) -> None:
    """With its lock on the index there, the act fails and can be taken back."""
    task = Task(world, TASK)
    (world.project / ".git/index.lock").write_text("")
    before = run(world.project, "git rev-parse HEAD")
    with pytest.raises(SandboxError, match=r"index\.lock"):
        move(task.acts[0])
    (world.project / ".git/index.lock").unlink()
    assert move_back(task.acts[0]) == ()
    assert run(world.project, "git rev-parse HEAD; git status --short") == before


def test_an_act_can_be_repeated_and_goes_through_a_file(world: World) -> None:
    """After a crash in the middle it is read from disk and done or undone again, as often as needed."""
    task = Task(world, f"{TASK}; echo s > g; git stash -q; git checkout -q -b other; git branch -q -D side")
    before = run(world.project, STATE)
    act = GitAct.model_validate_json(json.dumps(json.loads(task.acts[0].model_dump_json())))
    for _ in range(2):
        move(act)
    after = run(world.project, STATE)
    assert after != before
    for _ in range(2):
        assert move_back(act) == ()
    assert run(world.project, STATE) == before


# --- staged work --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    ["git reset -q", "git reset -q --hard", "git checkout -q -f HEAD -- f", "echo other > f; git add f",
     "echo other > f; git commit -qam other", "rm .git/index; git read-tree HEAD", "git rm -q -f --cached f"],
)  # fmt: skip
def test_staged_content_that_nothing_else_holds_is_not_dropped_unasked(world: World, script: str) -> None:
    """The user staged a version and went on writing: only the index has it."""
    run(world.project, "echo precious > f; git add f; echo later > f")
    blob = run(world.project, "git rev-parse :f").strip()
    task = Task(world, script)
    assert any("staged content is dropped: f" in one.reason for one in task.history)
    task.apply()
    run(world.project, f"git reflog expire --expire=now --all; git gc -q --prune=now; git cat-file -e {blob}")
    assert task.undo() == ()
    assert run(world.project, "git rev-parse :f").strip() == blob


@pytest.mark.parametrize("script", ["git commit -qm x", "git stash -q", "git commit -qm x; echo y > f; git add f"])
def test_staged_content_that_git_still_holds_is_kept(world: World, script: str) -> None:
    """It is in a commit or in the stash now."""
    run(world.project, "echo precious > f; git add f")
    assert not [one for one in Task(world, script).history if "dropped" in one.reason]


# --- operations under way -----------------------------------------------------------------------------------------


@pytest.fixture
def merging(world: World) -> World:
    """A merge of `other` is under way, with a conflict in f."""
    run(world.project, "git checkout -qb other; echo o > f; git commit -qam o; git checkout -q main")
    run(world.project, "echo m > f; git commit -qam m; git merge -q other || true; test -e .git/MERGE_HEAD")
    return world


@pytest.mark.parametrize(
    "end", ["echo both > f; git commit -qam both", "git checkout -q --ours f; git commit -qam ours"]
)
def test_a_merge_that_is_committed_is_silent(merging: World, end: str) -> None:
    """The commit has as its parents what was being merged; the marks of the merge go with it."""
    task = Task(merging, end)
    assert task.history == []
    task.apply()
    assert not (merging.project / ".git/MERGE_HEAD").exists()
    assert len(run(merging.project, "git log -1 --format=%P").split()) == 2


@pytest.mark.parametrize(
    "end", ["git merge --abort", "rm .git/MERGE_*", "rm .git/MERGE_HEAD; git commit -qam lone"]
)
def test_a_merge_that_is_given_up_asks(merging: World, end: str) -> None:
    """It is history, and nothing of git is said to start later."""
    task = Task(merging, end)
    assert any("under way" in one.reason for one in task.history)
    assert ChangeClass.PERSISTENCE not in task.loud().values()


def test_a_merge_that_the_task_began_stays_and_says_so(world: World) -> None:
    """Commits elsewhere are brought over; HEAD and index are not."""
    script = (
        "git checkout -qb other; echo o > f; git commit -qam o; git checkout -q main;"
        "echo m > f; git commit -qam m; git merge -q other || true"
    )
    task = Task(world, script)
    (conflict,) = task.found.all_conflicts
    assert conflict.path.endswith(".git/MERGE_HEAD")
    assert "under way" in conflict.reason
    assert list(task.of_git) == ["other, new: 1 commit: o"]
    assert not [one for one in task.found.effects if b"MERGE" in one.path]


def test_a_planted_rebase_never_arrives(world: World) -> None:
    """`git rebase --continue` would run what stands there."""
    script = (
        "H=$(git rev-parse HEAD); mkdir .git/rebase-merge; cd .git/rebase-merge; echo refs/heads/main > head-name;"
        "echo $H > onto; echo $H > orig-head; touch interactive done; echo 'exec touch ~/ran' > git-rebase-todo"
    )
    task = Task(world, script)
    assert [one.path.rpartition("/")[2] for one in task.found.all_conflicts] == ["rebase-merge"]
    task.apply()
    assert not (world.project / ".git/rebase-merge").exists()


# --- afterwards ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "on_top",
    ["echo p > p; git add p; git commit -qm mine", "git commit -q --amend -m other", "git checkout -q -b other",
     "git checkout -q -b dev HEAD~1; echo d > d; git add d; git commit -qm d; git merge -q --no-edit main"],
)  # fmt: skip
def test_undo_leaves_what_was_built_on_it(world: World, on_top: str) -> None:
    """HEAD, branches and index stay; one line says so, and how the commit is taken back."""
    task = Task(world, TASK)
    task.apply()
    run(world.project, on_top)
    before = run(world.project, STATE)
    (conflict,) = task.undo()
    assert run(world.project, STATE) == before
    assert "git revert" in conflict.reason


@pytest.mark.parametrize("after", ["git branch keep", "git tag keep", "echo w > w; git add w", "git gc -q"])
def test_undo_goes_by_what_it_changed(world: World, after: str) -> None:
    """A name for the commit, other staged files and packed refs hold nothing up, and stay."""
    task = Task(world, TASK)
    task.apply()
    run(world.project, after)
    kept = run(world.project, "git for-each-ref refs/heads/keep refs/tags; git ls-files w")
    assert task.undo() == ()
    assert run(world.project, "git log -1 --format=%s") == "base\n"
    assert run(world.project, "git for-each-ref refs/heads/keep refs/tags; git ls-files w") == kept


def test_the_user_committed_what_the_task_staged(world: World) -> None:
    """Undo does not take it out of the index again."""
    task = Task(world, "echo n > n; git add n")
    task.apply()
    run(world.project, "git commit -qm mine")
    assert len(task.undo()) == 1
    assert run(world.project, "git status --short") == ""


def test_what_only_the_reflog_of_a_removed_branch_names_is_kept(world: World) -> None:
    """git removes the reflog with the branch; artoo names its commits while the act can be undone."""
    run(
        world.project,
        "git checkout -q side; git commit -q --allow-empty -m gone; git commit -q --amend --allow-empty -m s;"
        "git checkout -q main; git reflog delete --rewrite HEAD@{0} HEAD@{1} HEAD@{2}",
    )
    named = run(world.project, "git reflog side --format=%H").split()
    task = Task(world, "git branch -q -D side")
    task.apply()
    run(world.project, "git reflog expire --expire=now --all; git gc -q --prune=now")
    assert task.undo() == ()
    run(world.project, "".join(f"git cat-file -e {one};" for one in named))


def test_names_of_lost_commits_are_forgotten_with_the_act(world: World) -> None:
    """While it can be undone git collects nothing; afterwards no ref of artoo is left."""
    task = Task(world, "git commit -q --amend -m other")
    old = run(world.project, "git rev-parse HEAD").strip()
    task.apply()
    run(world.project, f"git reflog expire --expire=now --all; git gc -q --prune=now; git cat-file -e {old}")
    for _ in range(2):
        forget(task.acts[0])
    assert "refs/artoo" not in run(world.project, "git for-each-ref")


def test_parts_go_each_for_itself(world: World) -> None:
    """What is checked out goes whole with its files; another branch alone."""
    from artoo.workspace import git

    task = Task(world, f"{TASK}; git branch new; git tag -a -m x t")
    (new,) = [one.path for one in task.found.git.classes if "(new, new" in one.path]
    acts, files, shown = git.acts(task.found.git, frozenset({new}))
    assert ([one.name for one in acts[0].refs], files, shown) == (["refs/heads/new"], frozenset(), {new})
    (main,) = [one.path for one in task.found.git.classes if "(main" in one.path]
    acts, files, shown = git.acts(task.found.git, frozenset({main}))
    assert files == {str(world.project / "n").encode()}
    move(acts[0])
    assert run(world.project, "git log -1 --format=%s; git for-each-ref refs/heads/new refs/tags") == "task\n"
