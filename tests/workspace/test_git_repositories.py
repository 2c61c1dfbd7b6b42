"""New repositories, embedded ones, linked worktrees, submodules: each for itself, whatever it looks like."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from git_projects import Task, run
from laid_out import World

from artoo.contracts.settling import ChangeClass
from artoo.workspace.git.act import move

INNER = "git init -q -b main inner; cd inner; echo a > a; git add a; git commit -qm a"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World.at(tmp_path, a_txt="a\n")
    run(world.project, "git init -q -b main .; git add .; git commit -qm one")
    return world


def test_a_new_repository_is_made_by_git_and_taken_away_by_undo(world: World) -> None:
    """It holds the task's commits, index, stash and settings, and none of the task's own files of git."""
    task = Task(world, f"{INNER}; git tag t; echo b >> a; git stash -q; git config user.name Someone")
    task.apply()
    inner = world.project / "inner"
    assert run(inner, "git log --format=%s; git tag; git status --short; git config user.name") == "a\nt\nSomeone\n"
    assert run(inner, "git stash list | wc -l; git fsck --strict").split() == ["1"]
    assert not list((inner / ".git/hooks").glob("*"))
    assert task.undo() == ()
    assert not (inner / ".git").exists()


@pytest.mark.parametrize(
    ("begin", "mark"),
    [
        ("git rebase main", "rebase-merge"),
        ("git merge main", "MERGE_HEAD"),
        ("git cherry-pick main", "CHERRY_PICK_HEAD"),
    ],
)
def test_an_unfinished_operation_in_a_new_repository_stays_pending(world: World, begin: str, mark: str) -> None:
    """The reason is shown, and nothing of the repository is made outside; its working files are ordinary files."""
    diverge = (
        "git checkout -qb other; echo o > a; git commit -qam o; git checkout -q main; echo m > a; git commit -qam m"
    )
    task = Task(world, f"{INNER}; {diverge}; git checkout -q other; {begin} >&2 || true; test -e .git/{mark}")
    (conflict,) = task.found.git.conflicts
    assert conflict.path == f"{world.project}/inner/.git/{mark}"
    assert "under way" in conflict.reason
    assert task.acts == ()
    task.apply()
    assert sorted(path.name for path in (world.project / "inner").iterdir()) == ["a"]


@pytest.mark.parametrize("script", ["git init -q --bare store", "git init -q store", "git clone -q --bare . store"])
def test_the_files_for_people_in_a_new_repository_are_no_conflict(world: World, script: str) -> None:
    """Git's template has a description and an exclude file; in a bare repository they lie beside others."""
    task = Task(world, f"{script} --template=/usr/share/git-core/templates")
    assert task.found.all_conflicts == ()
    assert task.loud() == {}


@pytest.mark.parametrize("options", ["", "--bare", "--depth 1", "--object-format=sha256"])
def test_every_kind_of_new_repository_works(world: World, options: str) -> None:
    """A bare one, a shallow one, one with other object names."""
    run(world.project, "git commit -q --allow-empty -m two")
    how = "init" if "format" in options else "clone"
    source = "" if how == "init" else "file://$PWD"
    more = "cd copy; git commit -q --allow-empty -m two" if how == "init" else "true"
    task = Task(world, f"git {how} -q {options} {source} copy; {more}")
    assert task.found.all_conflicts == ()
    task.apply()
    assert task.loud() == {}, task.found.all_classes
    assert run(world.project / "copy", "git log -1 --format=%s; git fsck") == "two\n"
    assert task.undo() == ()


def test_a_new_repository_that_was_used_since_stays_whole(world: World) -> None:
    """Undo leaves what the user committed, staged or set in it."""
    for number, use in enumerate(
        ("git commit -q --allow-empty -m mine", "echo m > m; git add m", "git config a.b c")
    ):
        task = Task(world, INNER, f"task-{number}")
        task.apply()
        run(world.project / "inner", use)
        (conflict,) = task.undo()
        assert conflict.path.endswith("inner/.git")
        run(world.project, "cd inner; git fsck; git status; cd ..; rm -rf inner")


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        (f"{INNER}; git config core.fsmonitor ./evil", "new repository: 1 commit"),
        (f"{INNER}; git config remote.o.url 'ext::sh -c evil'", "new repository: 1 commit"),
        (f"{INNER}; git config core.worktree /", "new repository: 1 commit"),
        (f"{INNER}; printf '#!/bin/sh\\n' > .git/hooks/pre-commit", "hooks/pre-commit"),
        (f"{INNER}; echo x > .git/info/exclude", "info/exclude"),
        (f"{INNER}; git checkout -qb x; echo x > .envrc; git add .; git commit -qm x; git checkout -q main",
         "new repository: 2 commits"),
    ],
)  # fmt: skip
def test_what_is_unusual_in_a_new_repository_asks(world: World, script: str, shown: str) -> None:
    """Settings that may start programs, hooks, files that a branch would bring."""
    task = Task(world, script)
    assert task.of_git[shown].change_class is ChangeClass.PERSISTENCE
    assert task.of_git[shown].reason


@pytest.mark.parametrize(
    "head",
    ["git rev-parse HEAD | tr a-f A-F", "echo $(git rev-parse HEAD) junk", "printf ''",
     "printf 'ref: refs/heads/x\\n\\nmore\\n'", "printf 'ref: refs/heads/x y\\n'", "echo ref:refs/heads/main"],
)  # fmt: skip
def test_an_embedded_repository_with_a_strange_head_asks(world: World, head: str) -> None:
    """Whatever git and artoo take for a head: settings there start nothing unasked."""
    evil = world.home / "ran"
    script = (
        f"d=assets; mkdir -p $d/refs $d/hooks; cp -r .git/objects $d/objects; cp .git/index $d/index;"
        f"({head}) > $d/HEAD;"
        f"printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = ..\\n"
        f'\\tfsmonitor = "touch {evil};false"\\n\' > $d/config'
    )
    task = Task(world, script)
    assert ChangeClass.PERSISTENCE in task.loud().values()
    silent = {one.path for one in task.found.all_classes if one.change_class is ChangeClass.SILENT}
    for effect in task.found.effects:
        path = Path(effect.path.decode())
        if effect.shown in silent and effect.after is not None and not effect.after.is_directory:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(Path(effect.source.decode()).read_bytes())
    place = world.project / "assets"
    place.mkdir(exist_ok=True)
    subprocess.run(["git", "status"], cwd=place, capture_output=True, check=False)
    assert not evil.exists()


@pytest.mark.parametrize("name", ["config", "hooks", "refs", "objects"])
def test_a_head_for_settings_that_wait_asks(world: World, name: str) -> None:
    """With it git would start what an earlier task put there as ordinary files."""
    run(world.project, f"mkdir -p data/{name}; touch data/{name}/x")
    task = Task(world, "mkdir -p data/objects data/refs; echo 'ref: refs/heads/main' > data/HEAD")
    assert task.loud()["data/HEAD"] is ChangeClass.PERSISTENCE


def test_ordinary_files_next_to_a_file_named_head_are_silent(tmp_path: Path) -> None:
    """A name alone makes no repository."""
    world = World.at(tmp_path)
    run(world.project, "mkdir objects; echo part > HEAD")
    assert Task(world, "echo x > new; mkdir -p src; echo y > src/new").loud() == {}


def test_a_fake_in_gits_own_files_is_no_repository(world: World) -> None:
    """A head and objects among the names of branches do not hide what happens to the branches."""
    run(world.project, "git branch side")
    task = Task(world, "mkdir .git/refs/objects .git/refs/refs; echo 'ref: refs/heads/x' > .git/refs/HEAD;"
                "rm .git/refs/heads/side")  # fmt: skip
    assert task.of_git["side removed"].change_class is ChangeClass.HISTORY


@pytest.mark.parametrize("script", ["rm -rf .git", "rm .git/HEAD", "mv .git moved"])
def test_a_repository_that_is_removed_is_history_in_all_its_files(world: World, script: str) -> None:
    """Each of them is shown by name."""
    task = Task(world, script)
    assert {value for path, value in task.loud().items() if path.startswith(".git")} == {ChangeClass.HISTORY}
    assert f"{world.project}/.git" not in {one.git_dir for one in task.acts}


@pytest.fixture
def linked(world: World) -> Path:
    """A linked worktree of the user next to the project's."""
    run(world.project, "git worktree add -q ../project/linked -b other")
    return world.project / "linked"


def test_a_commit_in_a_linked_worktree_moves_its_own_index(world: World, linked: Path) -> None:
    """HEAD and index there go with the branch; the main worktree is as it was."""
    task = Task(world, "cd linked; echo x > x; git add x; git commit -qm x; git checkout -q --detach")
    assert {one.change_class for one in task.found.git.classes} == {ChangeClass.SILENT, ChangeClass.HISTORY}
    before = run(linked, "git rev-parse HEAD; git symbolic-ref HEAD")
    task.apply()
    assert (
        run(linked, "git status --short; git log --format=%s -1; git symbolic-ref -q HEAD || echo none")
        == "x\nnone\n"
    )
    assert run(world.project, "git status --short") == "?? linked/\n"
    assert task.undo() == ()
    assert run(linked, "git rev-parse HEAD; git symbolic-ref HEAD") == before


def test_a_branch_that_another_worktree_has_checked_out_asks(world: World, linked: Path) -> None:
    """Its files and index would stay behind."""
    task = Task(
        world,
        "git branch -q -f new; c=$(git commit-tree HEAD^{tree} -p HEAD -m x); git update-ref refs/heads/other $c",
    )
    assert [one.reason for one in task.history] == ["it is checked out in another worktree"]


def test_a_linked_worktree_that_is_removed_asks(world: World, linked: Path) -> None:
    """What was staged there goes with it."""
    assert {one.change_class for one in Task(world, "git worktree remove -f linked").history} == {
        ChangeClass.HISTORY
    }


def test_a_submodule_goes_its_own_way(world: World) -> None:
    """A commit in a submodule of the user moves its branch; the project's own commit says which one it takes."""
    run(
        world.project,
        "git init -q -b main ../lib; git -C ../lib commit -q --allow-empty -m lib;"
        "git -c protocol.file.allow=always submodule -q add ../lib sub; git commit -qm sub",
    )
    task = Task(world, "cd sub; echo x > x; git add x; git commit -qm x; cd ..; git add sub; git commit -qm up")
    assert {path for path in task.loud() if ".git" in path} == {".git (main: 1 commit: up)"}
    assert "submodule" in task.of_git["main: 1 commit: up"].reason
    task.apply()
    assert run(world.project, "git status --short; git -C sub log --format=%s") == "x\nlib\n"
    assert task.undo() == ()
    assert run(world.project, "git -C sub log --format=%s; git log -1 --format=%s") == "lib\nsub\n"


def test_hostile_names(world: World) -> None:
    """Line ends, tabs, quotes and bytes that are no text, in paths, branches and subjects."""
    script = (
        "printf x > $'new\\nline'; printf y > $'tab\\t\"q\"'; printf z > $'\\xff\\xfe'; git add .;"
        "git commit -qm $'sub\\x1b[31mject'; git branch $'b\\xe2\\x80\\xaer(anch'; "
        "mkdir $'d\\n'; cd $'d\\n'; git init -q -b main .; git commit -q --allow-empty -m x"
    )
    task = Task(world, script)
    assert all(path.isprintable() for path in task.of_git)
    task.apply()
    assert run(world.project, "git status --short | grep -v '^??' || true; git ls-files | wc -l") == "4\n"
    assert task.undo() == ()


def test_the_users_strange_settings_are_honoured(world: World) -> None:
    """core.worktree elsewhere, included settings, settings of worktrees, hooks elsewhere, packed refs."""
    run(
        world.project,
        "mkdir ../tree; git config core.worktree ../../tree; echo '[core]' > .git/more;"
        "git config include.path more; git config extensions.worktreeConfig true;"
        "git config core.hooksPath /nowhere; git pack-refs --all;"
        "git checkout -q -f HEAD",
    )
    task = Task(world, "cd ../tree; export GIT_DIR=../project/.git; echo b > b; git add b; git commit -qm b")
    assert task.acts[0].needs == (str(world.home / "tree/b"),)
    task.apply()
    assert run(world.project, "git log -1 --format=%s; git status --short") == "b\n"


def test_objects_that_git_finds_wrong_stay_outside(world: World) -> None:
    """A tree with `.git` in it never reaches the user's objects, and the reason says what git said."""
    script = (
        "t=$(printf '100644 blob %s\\t.git\\n' $(echo x | git hash-object -w --stdin) | git mktree);"
        "git update-ref refs/heads/bad $(git commit-tree $t -m bad)"
    )
    before = run(world.project, "find .git -type f | sort")
    task = Task(world, script)
    (conflict,) = task.found.all_conflicts
    assert "fsck" in conflict.reason or "index-pack" in conflict.reason or "hasDotgit" in conflict.reason
    assert task.acts == ()
    assert run(world.project, "find .git -type f | sort") == before


def test_git_is_not_started_where_a_link_may_lead_to_a_pipe(world: World) -> None:
    """It would wait for ever there. Symbolic refs and hooks may be links."""
    (stays,) = Task(world, "ln -s ../p .git/packed-refs").found.all_conflicts
    assert "a device or a link" in stays.reason
    links = "ln -s refs/heads/main .git/refs/heads/other; ln -s ../../f .git/hooks/post-merge; git branch third"
    assert Task(world, links, "task-2").found.all_conflicts == ()


def test_a_look_changes_nothing(world: World) -> None:
    """Until an act moves, the user's repository has no new object and no new ref."""
    before = run(world.project, "find .git -type f | sort")
    task = Task(world, "echo x > x; git add x; git commit -qm x")
    assert run(world.project, "find .git -type f | sort") == before
    move(task.acts[0])
    assert run(world.project, "git log -1 --format=%s") == "x\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can work in another user's repository")
@pytest.mark.parametrize("reachable", [True, False])
def test_what_root_brings_over_belongs_to_the_owner_of_the_repository(reachable: bool) -> None:
    """A file of root's in there would keep the owner's git from writing, if the owner can come there at all."""
    with tempfile.TemporaryDirectory() as place:
        world = World.at(Path(place), a_txt="a\n")
        run(world.project, "git init -q -b main .; git add .; git commit -qm one; mkdir inner; touch inner/f")
        task = Task(world, f"echo x > x; git add x; git commit -qm x; git branch a/b; git stash -q; {INNER}")
        owner = 12_345 if reachable else 0
        for path in (world.project, *world.project.rglob("*")):
            os.chown(path, 12_345, 12_345, follow_symlinks=False)
        os.chmod(place, 0o711 if reachable else 0o700)
        known = set(world.project.rglob("*"))
        for act in task.acts:
            move(act)
        made = {path.lstat().st_uid for path in set(world.project.rglob("*")) - known if ".git" in path.parts}
        assert made <= {12_345, owner}
        assert made == {12_345} or not reachable
        assert run(world.project, "git -c safe.directory='*' log -1 --format=%s") == "x\n"
