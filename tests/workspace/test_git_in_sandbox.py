"""A task that commits in a real sandbox: reviewed, applied and undone by the settlement, with both backends."""

from __future__ import annotations

from pathlib import Path

from git_projects import run
from task_world import World

from artoo.workspace import commit
from artoo.workspace.changes.change_set import ChangeSet
from artoo.workspace.settlement.service import opened
from plain_user import as_plain_user

SCRIPT = (
    "export GIT_AUTHOR_NAME=U GIT_AUTHOR_EMAIL=u@e GIT_COMMITTER_NAME=U GIT_COMMITTER_EMAIL=u@e;"
    "echo n > n.txt; git add n.txt; git commit -qm two; git branch more;"
    "git init -q -b main inner; cd inner; echo x > x; git add x; git commit -qm inner"
)


def test_commits_of_a_task_arrive_and_go(either: World) -> None:
    """Branch, index, files and a new repository; afterwards everything is as it was."""
    run(either.project, "git init -q -b main .; echo a > a; git add a; git commit -qm one")
    either.does(SCRIPT)
    with opened(either.directory(), either.artoo_home, backend=either.backend) as settlement:
        assert settlement is not None
        found: ChangeSet = settlement.review()
        assert found.silent, found.all_classes
        assert settlement.apply(found).state == "applied"
    told = (
        "git log --format=%s; git status --short; git branch; git -C inner log --format=%s; git -C inner status -s"
    )
    assert run(either.project, told).split() == ["two", "one", "??", "inner/", "*", "main", "more", "inner"]
    assert commit.undo(either.artoo_home, "t").refused == ()
    assert run(either.project, "git log --format=%s; git status --short; git branch; ls") == "one\n* main\na\n"


def test_a_setting_of_the_task_starts_nothing_outside(either: World) -> None:
    """Its repository is asked in the sandbox; what stays pending stays there."""
    run(either.project, "git init -q -b main .; echo a > a; git add a; git commit -qm one")
    mark = either.home / "ran"
    either.does(f"({SCRIPT}); git config core.fsmonitor 'touch {mark}'; git config core.pager 'touch {mark}'")
    with opened(either.directory(), either.artoo_home, backend=either.backend) as settlement:
        assert settlement is not None
        found = settlement.review()
        loud = {one.path: one.change_class.value for one in found.all_classes if one.change_class != "silent"}
        assert loud == {str(either.project / ".git/config"): "persistence"}
        settlement.apply(found)
    assert not mark.exists()


def test_a_plain_user_has_the_same() -> None:
    """Without any rights of root."""
    as_plain_user(Path(__file__), only="commits_of_a_task")
