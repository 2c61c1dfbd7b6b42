"""What comes with commits, and what git starts: a commit may not carry what a file may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_projects import Task, run
from laid_out import World

from artoo.contracts.settling import ChangeClass

COMMIT = (
    "export GIT_INDEX_FILE=/tmp/artoo-test-index-$$; git read-tree HEAD;"
    " h=$(echo evil | git hash-object -w --stdin);"
    " for f in {paths}; do git update-index --add --cacheinfo {mode},$h,$f; done;"
    " c=$(git commit-tree $(git write-tree) -p HEAD -m 'fix typo'); git update-ref {ref} $c; rm $GIT_INDEX_FILE"
)
"""A commit of which neither index nor working files tell."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World.at(tmp_path, a_txt="a\n")
    run(world.project, "git init -q -b main .; git add .; git commit -qm one")
    return world


@pytest.mark.parametrize(
    ("paths", "mode", "ref", "expected"),
    [
        (".envrc", "100644", "refs/heads/main", ChangeClass.PERSISTENCE),
        (".github/workflows/x.yml", "100644", "refs/heads/main", ChangeClass.PERSISTENCE),
        ("Makefile", "100644", "refs/heads/new", ChangeClass.PERSISTENCE),
        (".gitattributes", "100644", "refs/tags/new", ChangeClass.PERSISTENCE),
        ("run", "100755", "refs/heads/main", ChangeClass.MODE),
        ("link", "120000", "refs/heads/main", ChangeClass.LINK),
        ("a.txt", "100644", "refs/heads/main", ChangeClass.EDIT),
        ("a.txt", "100644", "refs/heads/new", ChangeClass.SILENT),
        ("b.txt", "100644", "refs/heads/main", ChangeClass.SILENT),
        ("b.txt", "100644", "refs/remotes/origin/main", ChangeClass.HISTORY),
    ],
)
def test_files_of_commits_are_judged_like_files(
    world: World, paths: str, mode: str, ref: str, expected: ChangeClass
) -> None:
    """Start-up files, execute bits, links and edits ask, whichever way they come."""
    (change,) = Task(world, COMMIT.format(paths=paths, mode=mode, ref=ref)).found.git.classes
    assert change.change_class is expected
    if expected not in (ChangeClass.SILENT, ChangeClass.HISTORY):
        assert paths in change.reason


@pytest.mark.parametrize(
    ("edit", "expected", "said"),
    [
        ("true", ChangeClass.EDIT, "(is renamed to new.txt)"),
        ("echo 9 >> new.txt", ChangeClass.DELETION, "and edited"),
    ],
)
def test_a_rename_in_a_commit_is_shown_as_one(world: World, edit: str, expected: ChangeClass, said: str) -> None:
    """Nothing is lost by it but the name; with an edit it needs the approval of a deletion."""
    run(world.project, "seq 9 > old.txt; git add .; git commit -qm old")
    task = Task(world, f"git mv old.txt new.txt; {edit}; git commit -qam moved")
    (change,) = task.found.git.classes
    assert change.change_class is expected
    assert "old.txt (is renamed to new.txt" in change.reason
    assert said in change.reason


def test_an_earlier_commit_counts_too(world: World) -> None:
    """What a later commit removes again can still be checked out."""
    script = "echo x > .envrc; git add .; git commit -qm one; git rm -q .envrc; git commit -qm two"
    assert ChangeClass.PERSISTENCE in {one.change_class for one in Task(world, script).found.git.classes}


def test_what_is_only_staged_counts_too(world: World) -> None:
    """The next commit of the user would carry it."""
    script = "h=$(echo evil | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$h,.envrc"
    (change,) = Task(world, script).found.git.classes
    assert (change.change_class, change.reason[:16]) == (ChangeClass.PERSISTENCE, "it brings .envrc")


def test_what_is_only_stashed_counts_too(world: World) -> None:
    """`git stash pop` would write it."""
    script = "echo evil > Makefile; git add Makefile; git stash -q"
    assert {one.change_class for one in Task(world, script).found.git.classes} == {ChangeClass.PERSISTENCE}


def test_a_merge_of_the_users_branch_brings_nothing_new(world: World) -> None:
    """The user has those commits; only the working files that they change are changes."""
    run(
        world.project,
        "git checkout -qb side; echo x > Makefile; git add .; git commit -qm s; git checkout -q main;"
        "git commit -q --allow-empty -m m",
    )
    task = Task(world, "git merge -q --no-edit side")
    assert "Makefile" in task.loud()
    assert {one.change_class for one in task.found.git.classes} == {ChangeClass.SILENT}


def test_bounds_fail_closed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """More commits than can be judged are asked about, and the reason says so."""
    monkeypatch.setattr("artoo.workspace.git.quarantine.MOST_JUDGED", 2)
    (change,) = Task(world, "for n in 1 2 3; do git commit -q --allow-empty -m $n; done").found.git.classes
    assert change.change_class is ChangeClass.HISTORY
    assert "too many" in change.reason


@pytest.mark.parametrize(
    ("setting", "script"),
    [
        ("filter.nb.clean '\"/usr/bin/python3\" -m nbstripout'", "echo x > nbstripout.py"),
        ("filter.nb.clean 'python3 -m tools.strip'", "mkdir tools; echo x > tools/strip.py"),
        ("filter.nb.clean 'python3 -m tools'", "mkdir tools; echo x > tools/__main__.py"),
        ("core.fsmonitor scripts/watch", "mkdir scripts; echo x > scripts/watch"),
        ("core.fsmonitor scripts/watch", "mkdir -p sub/scripts; echo x > sub/scripts/watch"),
        ("merge.own.driver 'sh tools/merge.sh %O %A %B'", "mkdir tools; echo x > tools/merge.sh"),
        ("alias.go '!sh ./go.sh'", "echo x > go.sh"),
        ("core.hooksPath tools/hooks", "mkdir -p tools/hooks; echo x > tools/hooks/pre-commit"),
        ("include.path ../team.config", "echo x > team.config"),
        ('diff.x.textconv "$PWD/conv.pl"', "echo x > conv.pl"),
    ],
)
def test_what_settings_of_git_name_asks(world: World, setting: str, script: str) -> None:
    """By a path, by the end of one, as a module; an ordinary file next to it does not."""
    run(world.project, f"git config {setting}")
    assert Task(world, f"{script}; echo y > other.txt").loud().keys() - {"other.txt"}
    assert "other.txt" not in Task(world, "echo y > other.txt", "task-2").loud()


def test_what_a_hook_of_the_user_names_asks(world: World) -> None:
    """The user's own hook may start a file that is not there yet."""
    hook = world.project / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n[ -e scripts/check ] && sh scripts/check\n")
    hook.chmod(0o755)
    assert Task(world, "mkdir scripts; echo x > scripts/check").loud() == {"scripts/check": ChangeClass.PERSISTENCE}


@pytest.mark.parametrize(
    "script",
    [
        "(echo '#!/bin/sh'; yes '# filler' | head -n 40000; echo sh scripts/check) > .git/hooks/pre-push",
        "git config core.hooksPath hk; mkdir hk; yes '# filler' | head -n 40000 > hk/pre-commit",
        "echo '[core' >> .git/config",
    ],
)
def test_settings_and_hooks_that_cannot_be_read_whole_may_start_any_file(world: World, script: str) -> None:
    """A bound, or damage, never makes something silent."""
    run(world.project, script)
    loud = Task(world, "echo x > ordinary.txt").loud()
    assert loud == {"ordinary.txt": ChangeClass.PERSISTENCE}


@pytest.mark.parametrize(
    ("script", "path"),
    [
        ("git config core.fsmonitor ./evil", ".git/config"),
        ("git config branch.main.remote origin", ".git/config"),
        ("printf '#!/bin/sh\\n' > .git/hooks/pre-push", ".git/hooks/pre-push"),
        ("mkdir -p .git/info; echo '* filter=x' > .git/info/attributes", ".git/info/attributes"),
        ("echo secret > .git/info/exclude", ".git/info/exclude"),
        ("git rev-parse HEAD > .git/info/grafts", ".git/info/grafts"),
        ("echo x > .git/strange", ".git/strange"),
        ("mkdir -p .git/rr-cache/x; echo x > .git/rr-cache/x/postimage", ".git/rr-cache/x/postimage"),
    ],
)
def test_settings_and_hooks_stay_files_that_ask(world: World, script: str, path: str) -> None:
    """They are never part of what git brings over."""
    task = Task(world, f"{script}; git commit -q --allow-empty -m x")
    assert task.loud()[path] in (ChangeClass.PERSISTENCE, ChangeClass.HISTORY)
    assert [one.change_class for one in task.found.git.classes] == [ChangeClass.SILENT]


def test_settings_of_a_task_start_nothing_outside(world: World) -> None:
    """Neither the review nor the apply runs what a setting of the repository names."""
    mark = world.home / "ran"
    run(world.project, f"git config core.fsmonitor 'touch {mark};false'; git config core.pager 'touch {mark}'")
    hook = world.project / ".git/hooks/reference-transaction"
    for name in ("reference-transaction", "post-index-change"):
        hook.with_name(name).write_text(f"#!/bin/sh\ntouch {mark}\n")
        hook.with_name(name).chmod(0o755)
    task = Task(
        world,
        "g='git -c core.fsmonitor=false -c core.hooksPath=/dev/null'; $g commit -q --allow-empty -m x; echo y > y;"
        "$g add y",
    )
    mark.unlink(missing_ok=True)
    task.look()
    task.apply()
    task.undo()
    assert not mark.exists()
    assert run(world.project, "git -c core.fsmonitor=false log --format=%s").split() == ["one"]
