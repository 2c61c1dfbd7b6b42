# ruff: noqa: E501 - scripts are easier to read in one line
"""Ordinary work on the project of the attacks asks nothing that the table of git does not make a question."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_scenes import run
from layers import view_of
from path_attacks import PREPARED
from sandbox_world import World

from artoo.contracts.settling import ChangeClass
from artoo.world import caches
from artoo.world.difference import Difference, difference_of
from artoo.world.settle import apply_difference
from artoo.world.view_place import TRUNK

GIT = {
    "a commit": "echo x > new; git add new; git commit -qm new",
    "a branch": "git checkout -q -b fresh; echo x > new; git add new; git commit -qm new",
    "a merge": "git commit -q -m p; git merge -q --no-edit side",
    "a fetch": "git fetch -q . side",
    "a rebase of own commits": "git checkout -q -b fresh; for n in a b; do echo $n > $n; git add $n; git commit -qm $n; done;"
    "git rebase -q --force-rebase main; git commit -q --amend -m c",
    "a collection": "git commit -q -m p; git repack -q -a -d; git prune-packed",
    "names packed": "git pack-refs --all",
    "looks": "git status; git log --all; git fsck; git diff; git stash list",
    "a graph": "git commit-graph write --reachable",
    "a repository": "git init -q made; cd made; echo a > a; git add a; git commit -qm a; git commit -q --amend -m b",
    "a clone": "git clone -q . copy",
}
PYTHON = {
    "caches": "touch main.py; python3 -m compileall -q main.py",
    "caches made again": "python3 -m compileall -q -f lib.py",
    "optimized ones": "python3 -OO -m compileall -q lib.py main.py",
    "checked by hashes": "python3 -m compileall -q -f --invalidation-mode checked-hash lib.py",
    "constants of all kinds": 'printf \'A = (1, 2.5, 1j, b"x", "\\u00e9", None, ..., 10**30, {1, 2} , frozenset({3}))\\n'
    "def g(*a, k=1, **z):\\n    return [x in {1, 2, 3} for x in a if k]\\nclass C:\\n    x: int = 1\\n' > kinds.py;"
    "python3 -m compileall -q kinds.py",
    "a package": "mkdir pack; echo > pack/__init__.py; echo 'x = 1' > pack/m.py; python3 -c 'import pack.m'",
    "links to a program": "ln -s $(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))') python",
    "links inside": "ln -s lib.py other; mkdir d; ln -s ../lib.py d/l; ln -s d/../lib.py round",
}


@pytest.fixture
def prepared(world: World) -> World:
    run(world.project, PREPARED)
    run(world.project, "git add p; git config --unset-all core.editor")
    return world


def after(world: World, script: str) -> Difference:
    return difference_of(view_of(world, lambda home: run(home / "project", script)), world.artoo_home)


def loud(found: Difference) -> list[tuple[str, str]]:
    """What needs consent, edits and moves of files of the project aside."""
    classes = (one for one in found.classes if one.change_class not in (ChangeClass.SILENT, ChangeClass.EDIT))
    return [(Path(one.path).name, one.reason) for one in classes]


@pytest.mark.parametrize("name", GIT)
def test_ordinary_work_with_git_is_silent(prepared: World, name: str) -> None:
    """New commits, names that move forward, objects packed anew: nothing of it is lost."""
    assert loud(after(prepared, GIT[name])) == []


@pytest.mark.parametrize("name", PYTHON)
def test_ordinary_work_with_python_is_silent(prepared: World, name: str) -> None:
    """What its source compiles to is a cache, whoever made it and in whatever order."""
    found = after(prepared, PYTHON[name])
    assert loud(found) == []
    assert found.silent and not found.empty


_TAGGED = "printf 'Signature: 8a477f597d28d172789f06886806bc55\\n' > .pytest_cache/CACHEDIR.TAG;"
_RUN = f"mkdir -p .pytest_cache/v; {_TAGGED} echo x > .pytest_cache/v/nodeids; echo x > work"


def test_a_cache_that_a_tool_made_in_the_task_is_left_out(prepared: World) -> None:
    """Nobody asked for it: it is not taken over, so there is nothing to review and nothing to undo."""
    assert [Path(one.path).name for one in after(prepared, _RUN).changes] == ["work"]


@pytest.mark.parametrize(
    "script",
    [
        _RUN.replace(_TAGGED, ""),
        f"{_RUN}; chmod +x .pytest_cache/v/nodeids",
        f"{_RUN}; ln -s nodeids .pytest_cache/v/link",
        _RUN.replace(".pytest_cache", "kept"),
    ],
)
def test_what_is_not_marked_or_no_data_is_no_cache(prepared: World, script: str) -> None:
    """A directory that only has the name, a program or a link in one, and a marked one that is no tool's are work."""
    assert "nodeids" in [Path(one.path).name for one in after(prepared, script).changes]


def test_a_cache_that_nobody_can_check_is_left_out(prepared: World) -> None:
    """Another Python's, a test runner's: it is not taken over, and needs no consent."""
    made = "mkdir -p pack/__pycache__; echo x > pack/__pycache__/m.cpython-399.pyc; echo x > __pycache__/m.cpython-311-pytest-8.pyc"
    found = after(prepared, f"{made}; echo y > note")
    assert [Path(one.path).name for one in found.changes] == ["note", "pack"]
    place = view_of(prepared, lambda home: run(home / "project", f"{made}; echo y > note"), "task-2")
    again = difference_of(place, prepared.artoo_home)
    assert apply_difference(place, prepared.artoo_home, again, digest=again.digest).whole
    assert not list(prepared.project.rglob("*-399*")) and not list(prepared.project.rglob("*pytest*"))


def test_what_is_left_out_does_not_come_up_when_a_part_was_applied(
    prepared: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an environment with too many caches none is taken over, and nothing waits of them when the rest is there."""
    monkeypatch.setattr(caches, "MOST_COMPILED", 3)
    made = "mkdir -p env/lib; for n in 1 2 3 4 5; do echo x=1 > env/lib/m$n.py; done; python3 -m compileall -q env"
    place = view_of(prepared, lambda home: run(home / "project", f"{made}; echo y > note"))
    first = difference_of(place, prepared.artoo_home)
    assert not [one.path for one in first.changes if "__pycache__" in one.path]
    wanted = [str(prepared.project / "env")]
    apply_difference(place, prepared.artoo_home, first, digest=first.digest, paths=wanted)
    assert len(list(prepared.project.glob("env/lib/*.py"))) == 5
    rest = difference_of(place, prepared.artoo_home)
    assert [Path(one.path).name for one in rest.changes] == ["note"]
    assert apply_difference(place, prepared.artoo_home, rest, digest=rest.digest).whole


def test_two_names_of_one_file_with_gits_message(prepared: World) -> None:
    """The next commit would write into the other one."""
    place = view_of(prepared, lambda home: run(home / "project", "echo n > n; echo n > .git/COMMIT_EDITMSG"))
    upper = place.upper(TRUNK, 0) / "project"
    (upper / ".git/COMMIT_EDITMSG").unlink()
    (upper / ".git/COMMIT_EDITMSG").hardlink_to(upper / "n")
    assert [name for name, _ in loud(difference_of(place, prepared.artoo_home))] == ["COMMIT_EDITMSG"]
