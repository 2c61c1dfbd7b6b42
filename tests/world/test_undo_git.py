"""Undo in a repository in which the person went on: nothing that their git state uses goes away."""

from __future__ import annotations

import errno
import time
from pathlib import Path

import pytest
from git_scenes import TWO_FILES, WHOLE, run
from layers import view_of
from sandbox_snapshots import snapshot
from sandbox_world import World

from artoo.contracts.changes import UndoReport
from artoo.world import git_back
from artoo.world.closing import opened
from artoo.world.journal import Record, records
from artoo.world.recover import recover
from artoo.world.taken import bytes_kept
from artoo.world.undo import Keep, prune, undo, undoable

TASK = "echo n > n; git add n; git commit -qm task"


@pytest.fixture
def world(world: World) -> World:
    """A project that is a repository."""
    run(world.project, TWO_FILES)
    return world


def settle(world: World, script: str, task: str = "task-1") -> None:
    """A task's script takes effect."""
    place = view_of(world, lambda home: run(home / "project", script), task)
    with opened(place, world.artoo_home) as view:
        found = view.difference()
        assert view.apply(found, digest=found.digest).whole


def undone(world: World, task: str = "task-1") -> UndoReport:
    report = undo(world.artoo_home, task)
    run(world.project, WHOLE)
    return report


def left(world: World, report: UndoReport) -> dict[str, str]:
    return {str(Path(one.path).relative_to(world.project)): one.reason for one in report.refused}


ON_TOP = {
    "commit": "echo p > p; git add p; git commit -qm mine",
    "amend": "git commit -q --amend -m other",
    "staged": "echo w > w; git add w",
    "elsewhere": "git checkout -q -b other",
    "merge": "git checkout -q -b dev HEAD~1; echo d > d; git add d; git commit -qm d; git merge -q --no-edit main",
}


@pytest.mark.parametrize("name", ON_TOP)
def test_what_was_built_on_it_stays_whole(world: World, name: str) -> None:
    """HEAD, branches, index and the committed file stay; one line says so, and how the commit is taken back."""
    settle(world, TASK)
    run(world.project, ON_TOP[name])
    before = run(world.project, "git rev-parse HEAD; git status --short; git ls-files -s")
    report = undone(world)
    assert run(world.project, "git rev-parse HEAD; git status --short; git ls-files -s") == before
    assert report.restored == ()
    told = left(world, report)
    assert set(told) - {"n"} == {".git"}
    assert "HEAD, branches and what is staged stay as they are; git revert " in told[".git"]


def test_the_command_that_is_named_takes_the_commit_back(world: World) -> None:
    """Of one commit, of several, and of a merge."""
    for number, script in enumerate(
        (
            TASK,
            "for n in 1 2; do echo $n > m$n; git add m$n; git commit -qm $n; done",
            "git checkout -q -b side; echo s > s; git add s; git commit -qm s; git checkout -q main;"
            " git merge -q --no-ff --no-edit side",
        )
    ):
        before = run(world.project, "git ls-files")
        settle(world, script, f"task-{number}")
        run(world.project, "git commit -q --allow-empty -m mine")
        told = left(world, undone(world, f"task-{number}"))[".git"]
        run(
            world.project, told.partition("; ")[2].partition(" takes back")[0].replace("revert", "revert --no-edit")
        )
        assert run(world.project, "git ls-files") == before


@pytest.mark.parametrize("script", ["git branch keep", "git tag keep", "echo mine >> g; git stash -q"])
def test_a_name_for_it_does_not_hold_it(world: World, script: str) -> None:
    """The branch goes back; what the person gave a name, or stashed on it, is there."""
    settle(world, TASK)
    base = run(world.project, "git rev-parse HEAD~1")
    run(world.project, script)
    told = left(world, undone(world))
    assert set(told) <= {".git/logs/HEAD"}, "the record of a stash is in it"
    assert run(world.project, "git rev-parse HEAD; git status --short") == base
    if "stash" in script:
        run(world.project, "git stash pop -q")
        assert (world.project / "g").read_text() == "g\nmine\n"
    else:
        assert run(world.project, "git show keep:n") == "n\n"


def test_another_tasks_commit_on_it_stays_whole(world: World) -> None:
    """The first of two is not taken from under the second; the second can be undone, and then the first."""
    settle(world, TASK)
    settle(world, "echo m > m; git add m; git commit -qm second", "task-2")
    assert ".git" in left(world, undone(world))
    assert left(world, undone(world, "task-2")) == {}
    assert left(world, undone(world)) == {}
    assert run(world.project, "git log --format=%s; git status --short") == "base\n"


def test_packed_names_are_read(world: World) -> None:
    """After `git gc` the branch goes back as before; one that the task made and git packed holds all."""
    settle(world, TASK)
    run(world.project, "git gc -q")
    assert left(world, undone(world)) == {}
    assert run(world.project, "git log --format=%s; git status --short") == "base\n"
    settle(world, f"git checkout -q -b dev; {TASK}", "task-2")
    run(world.project, "git gc -q")
    assert "refs/heads/dev: git has packed it since" in left(world, undone(world, "task-2"))[".git"]
    assert run(world.project, "git status --short") == ""


def test_the_person_committed_what_was_staged(world: World) -> None:
    """A file of a task that only staged it is in the person's commit: it stays, and so does its content."""
    settle(world, "echo n > n; git add n; echo x > loose")
    run(world.project, "git commit -qm mine")
    assert set(left(world, undone(world))) == {".git", "n"}
    assert not (world.project / "loose").exists()
    assert run(world.project, "git status --short") == ""


def test_objects_are_left_for_git_to_collect(world: World) -> None:
    """Undone whole, the repository is as before, but for objects that nothing names; they are not told."""
    before = snapshot(world.project)
    settle(world, TASK)
    report = undone(world)
    assert not any("/objects/" in path for path in report.restored)
    run(world.project, "git reflog expire --expire=now --all; git gc -q --prune=now")
    assert run(world.project, "git fsck --unreachable; git count-objects -v | grep in-pack") == "in-pack: 4\n"
    assert {path for path in snapshot(world.project) if ".git" not in str(path)} == {
        path for path in before if ".git" not in str(path)
    }


def test_a_repository_that_the_task_made_goes_whole_or_not_at_all(world: World) -> None:
    """Untouched nothing of it is left; with a commit or a stash of the person's all of it stays."""
    before = snapshot(world.project)
    made = f"mkdir new; cd new; {TWO_FILES}"
    settle(world, made)
    assert left(world, undone(world)) == {}
    assert snapshot(world.project) == before
    for number, script in enumerate(("git commit -q --allow-empty -m mine", "echo x > f; git stash -q")):
        settle(world, made, f"task-{number}")
        run(world.project / "new", script)
        assert "new/.git" in left(world, undone(world, f"task-{number}"))
        run(world.project / "new", WHOLE)
        assert run(world.project / "new", "git status --short") == ""
        run(world.project, "rm -rf new")


def test_commits_that_come_back_without_their_names_get_some(world: World) -> None:
    """The person went on in a repository that the task had begun anew: their names stay, and the old history, which
    nothing would name, is named as long as the task can be undone."""
    run(world.project, "echo s > s; git add s; git commit -qm second; git tag -a v1 -m v1")
    old = run(world.project, "git rev-parse HEAD v1").split()
    settle(world, "rm -rf .git; git init -q -b main; git add -A; git commit -qm anew")
    run(world.project, "echo p > p; git add p; git commit -qm mine")
    for _ in range(2):
        reason = left(world, undone(world))[".git"]
        assert "HEAD, branches and what is staged stay as they are" in reason
        run(world.project, "git reflog expire --expire=now --all; git gc -q --prune=now")
        named = run(world.project, "git for-each-ref --format='%(objectname)' refs/artoo").split()
        assert set(old) <= set(named)
        assert run(world.project, "git log --format=%s main").split() == ["mine", "anew"]
        assert run(world.project, f"git log --format=%s {old[0]}").split() == ["second", "base"]
    later = time.time() + 40 * 86400
    prune(world.artoo_home, Keep(), now=later)
    assert prune(world.artoo_home, Keep(), now=later + 4 * 86400) == 1
    assert run(world.project, "git for-each-ref refs/artoo; git status --short") == ""


def test_the_names_say_what_they_are_for(world: World) -> None:
    """Only where there are any."""
    settle(world, "rm -rf .git; git init -q -b main; git add -A; git commit -qm anew")
    run(world.project, "git commit -q --allow-empty -m mine")
    said = "commits that came back and had no name have one in refs/artoo/task-1"
    assert left(world, undone(world))[".git"].endswith(said)
    settle(world, TASK, "task-2")
    run(world.project, ON_TOP["commit"])
    assert "refs/artoo" not in left(world, undone(world, "task-2"))[".git"]


def test_the_time_of_an_object_is_nobodys_to_put_back(world: World) -> None:
    """Git sets it where a commit uses what is there already, so that it is not collected; it is not told either."""
    touched = next(path for path in (world.project / ".git/objects").glob("??/*"))
    settle(world, f"touch -d @1000000000 {touched.relative_to(world.project)}; echo x > x")
    assert left(world, (report := undone(world))) == {}
    assert report.restored == (f"{world.project}/x",)
    assert touched.stat().st_mtime == 10**9


def test_the_modes_of_objects_go_back(world: World) -> None:
    """Those that git has, also of the directories; where somebody else set one since, it is told."""
    told = "find .git/objects -printf '%m %P\\n' | sort"
    before = run(world.project, told)
    settle(world, "chmod -R go+w .git/objects")
    assert run(world.project, told) != before
    assert left(world, undone(world)) == {}
    assert run(world.project, told) == before
    assert undoable(world.artoo_home, Keep()) == ()
    settle(world, "chmod -R a+w .git/objects", "task-2")
    changed = next(path for path in (world.project / ".git/objects").glob("??/*"))
    changed.chmod(0o640)
    assert list(left(world, undone(world, "task-2"))) == [str(changed.relative_to(world.project))]


def test_the_modes_of_objects_that_git_has_packed_since_are_nothing_to_put_back(world: World) -> None:
    """It packs them by itself: else each was told, and the act kept for ever."""
    settle(world, f"chmod -R g+w .git/objects; {TASK}")
    run(world.project, "git gc -q")
    assert [path for path in left(world, undone(world)) if "objects/" in path] == []
    assert "objects/" not in "".join(
        step.path for record in records(world.artoo_home / "undo") for step in record.journal().steps
    )


def test_names_that_a_crash_kept_from_the_journal_go_with_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loose and packed ones."""

    class Crash(BaseException):
        pass

    def crash(*_: object) -> None:
        raise Crash

    for number, pack in enumerate(("true", "git pack-refs --all")):
        task = f"task-{number}"
        settle(world, f"rm -rf .git; git init -q -b main; git add -A; git commit -qm {task}", task)
        run(world.project, "git commit -q --allow-empty -m mine")
        with monkeypatch.context() as patched, pytest.raises(Crash):
            patched.setattr(Record, "end_undo", crash)
            undo(world.artoo_home, task)
        assert run(world.project, f"{pack}; git for-each-ref refs/artoo/{task}")
        recover(world.artoo_home)
        later = time.time() + 40 * 86400
        prune(world.artoo_home, Keep(), now=later)
        assert prune(world.artoo_home, Keep(), now=later + 4 * 86400) == 1
        assert run(world.project, "git for-each-ref refs/artoo; git status --short") == ""
        assert not (world.project / ".git/refs/artoo").exists()


ANEW = "rm -rf .git; git init -q -b main; git add -A; git commit -qm anew"
SAID = "commits that came back and had no name have one in refs/artoo/task-1"


def names_by_act(world: World) -> list[set[str]]:
    """Of the names that keep commits those that each act made, oldest first."""
    return [
        {Path(one.path).name for one in record.journal().steps if one.after and "/refs/artoo/task-1/" in one.path}
        for record in records(world.artoo_home / "undo")
    ]


@pytest.mark.parametrize("first", ["echo x > ../other", "echo x > f", "git config user.name z; echo 1 > f"])
def test_an_earlier_act_beside_the_history_that_came_back(world: World, first: str) -> None:
    """One that changed nothing there, or no names: it is undone, and the sentence is told once, every time."""
    run(world.project, "echo s > s; git add s; git commit -qm second")
    old = run(world.project, "git rev-parse HEAD").strip()
    settle(world, first)
    settle(world, ANEW)
    run(world.project, "echo p > p; git add p; git commit -qm mine")
    for _ in range(2):
        assert left(world, undone(world))[".git"].count(SAID) == 1
        assert run(world.project, f"git log --format=%s {old}").split() == ["second", "base"]
        assert not (world.home / "other").exists()
        run(world.project, "git pack-refs --all")
    owned = [names for names in names_by_act(world) if names]
    assert len(owned) == 1
    assert old in owned[0]


def test_names_of_two_acts_belong_to_one_each(world: World) -> None:
    """Forgetting the older takes away none of those that the newer made."""
    run(world.project, "echo s > s; git add s; git commit -qm second")
    lose = "git checkout -q -b x; echo 1 > o; git add o; git commit -qm o; git checkout -q main; git branch -qD x"
    settle(world, f"{lose}; git reset -q --hard HEAD~1; git reflog expire --expire=now --all")
    settle(world, ANEW)
    run(world.project, "echo p > p; git add p; git commit -qm mine")
    told = left(world, undone(world))
    assert set(told) == {".git", "s"}, "one line for what git has, of both"
    assert told[".git"].count(SAID) == 1
    older, newer = names_by_act(world)
    assert newer
    assert not older & newer
    total = sum(bytes_kept(record) for record in records(world.artoo_home / "undo"))
    assert prune(world.artoo_home, Keep(total_bytes=total - 1)) == 1
    assert newer <= set(run(world.project, "git for-each-ref --format='%(objectname)' refs/artoo").split())


def test_names_that_cannot_be_removed_keep_no_act(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository may be read-only by now: all that is too old went no more, and nothing that waited expired."""
    settle(world, ANEW)
    run(world.project, "git commit -q --allow-empty -m mine")
    assert undo(world.artoo_home, "task-1").refused
    unlink = Path.unlink

    def refused(path: Path, missing_ok: bool = False) -> None:
        if "/refs/artoo/" in str(path):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refused)
    assert prune(world.artoo_home, Keep(total_bytes=0)) == 1


def test_names_that_cannot_be_made_do_not_end_the_undo(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are made when it is repeated."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    settle(world, ANEW)
    run(world.project, "git commit -q --allow-empty -m mine")
    with monkeypatch.context() as patched:
        patched.setattr(git_back, "digest_file", refuse)
        assert ".git" in left(world, undone(world))
    assert SAID in left(world, undone(world))[".git"]


def test_directories_of_objects_that_are_there_again_are_not_told(world: World) -> None:
    """The person's commits made them anew."""
    settle(world, ANEW)
    run(world.project, "mkdir -p .git/objects/{0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f}{0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f}")
    run(world.project, "git commit -q --allow-empty -m mine")
    assert set(left(world, undone(world))) == {".git"}
