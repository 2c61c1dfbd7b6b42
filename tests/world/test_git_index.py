"""An index that git wrote anew by itself is the same index: nothing waits for it, and nothing is refused for it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from git_scenes import COMMITS, TOLD, run
from layers import view_of
from sandbox_snapshots import snapshot
from sandbox_world import World

from artoo.contracts.settling import ChangeClass
from artoo.world.closing import opened
from artoo.world.git_index import cached_trees, staged
from artoo.world.undo import undo

STATUS = {"GIT_OPTIONAL_LOCKS": "1"}


@pytest.fixture
def world(world: World) -> World:
    """A project that is a repository."""
    run(world.project, COMMITS)
    return world


def index_of(project: Path) -> bytes:
    return (project / ".git" / "index").read_bytes()


def looked_at(project: Path) -> None:
    """What a prompt does: git sees that a file was touched, and writes down that it is the same."""
    before = index_of(project)
    os.utime(project / "f1", ns=(0, 0))
    run(project, "git status", STATUS)
    assert index_of(project) != before


def test_what_a_look_leaves_is_the_same(world: World) -> None:
    """Other bytes, the same staged; what is staged or unstaged is told from it."""
    said = staged(index_of(world.project))
    assert said is not None
    looked_at(world.project)
    assert staged(index_of(world.project)) == said
    for script in ("echo x > f1; git add f1", "git rm -q --cached f3", "git update-index --chmod=+x f2"):
        run(world.project, script)
        now = staged(index_of(world.project))
        assert now is not None and now != said, script
        said = now


@pytest.mark.parametrize("script", ["git update-index --index-version 4", "git update-index --split-index"])
def test_what_cannot_be_read_counts_byte_by_byte(world: World, script: str) -> None:
    """Another format is no reason to guess; neither is damage."""
    whole = index_of(world.project)
    run(world.project, script)
    other = staged(index_of(world.project))
    assert other is None or other != staged(whole)
    assert staged(whole[:-30]) is None and staged(b"") is None and staged(b"DIRC" + bytes(30)) is None


def test_a_look_at_the_repository_is_no_conflict(world: World) -> None:
    """While a commit waits, before it is applied, and before it is undone; undo brings everything back."""
    before = run(world.project, TOLD)
    place = view_of(world, lambda home: run(home / "project", "echo x > f1; git commit -qam later"))
    looked_at(world.project)
    with opened(place, world.artoo_home) as view:
        found = view.difference()
        assert found.conflicts == ()
        assert view.apply(found, digest=found.digest).whole
    looked_at(world.project)
    assert undo(world.artoo_home, "task-1").refused == ()
    assert run(world.project, TOLD) == before


def test_what_the_person_staged_meanwhile_is_a_conflict(world: World) -> None:
    """The task's index would lose it."""
    place = view_of(world, lambda home: run(home / "project", "echo x > f1; git commit -qam later"))
    run(world.project, "echo mine > g; git add g")
    with opened(place, world.artoo_home) as view:
        first, *others = (one.path for one in view.difference().conflicts)
        assert first == str(world.project / ".git" / "index")
        assert str(world.project / "f1") in others, "the commit goes with it"


def test_a_file_saved_again_as_it_was_is_put_back(world: World) -> None:
    """Its content counts for undo, too, as it does for settling."""
    place = view_of(world, lambda home: (home / "project" / "f1").write_text("task\n"))
    with opened(place, world.artoo_home) as view:
        found = view.difference()
        assert view.apply(found, digest=found.digest).whole
    (world.project / "n").write_text("task\n")
    (world.project / "n").rename(world.project / "f1")
    assert undo(world.artoo_home, "task-1").refused == ()
    assert (world.project / "f1").read_text() == "1\n"


DEEP = "mkdir -p a/b c; echo 1 > a/b/x; echo 2 > a/y; echo 3 > c/z; git add .; git commit -qm deep"


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_what_an_index_remembers_of_trees_is_read(world: World, algorithm: str) -> None:
    """As git itself names them, in a repository of either kind; what was staged since is not remembered."""
    run(world.project, f"rm -rf .git; git init -q --object-format={algorithm} -b main .; {DEEP}")
    known = {b"": run(world.project, "git rev-parse HEAD^{tree}").strip()}
    for path in ("a", "a/b", "c"):
        known[path.encode()] = run(world.project, f"git rev-parse HEAD:{path}").strip()
    assert cached_trees(index_of(world.project), len(known[b""]) // 2) == known
    run(world.project, "echo other > a/y; git add a/y")
    assert set(cached_trees(index_of(world.project), len(known[b""]) // 2)) == {b"a/b", b"c"}


def test_a_remembered_tree_that_is_not_of_the_entries_needs_consent(world: World) -> None:
    """The next commit would be of another tree than `git diff --cached` shows."""
    run(world.project, DEEP)
    tree, other = (run(world.project, f"git rev-parse HEAD:{path}").strip() for path in ("a/b", "c"))

    def forge(home: Path) -> None:
        run(home / "project", "echo new > f1; git add f1")
        path = home / "project" / ".git" / "index"
        content = path.read_bytes()[:-20].replace(bytes.fromhex(tree), bytes.fromhex(other))
        path.write_bytes(content + hashlib.sha1(content).digest())

    with opened(view_of(world, forge), world.artoo_home) as view:
        [found] = (one for one in view.difference().classes if one.path.endswith("/.git/index"))
    assert found.change_class is not ChangeClass.SILENT and "what is staged" in found.reason


def test_a_look_leaves_the_times_of_what_it_borrows(world: World) -> None:
    """Git sets the time of an object that it would write and finds; the person's packs are theirs."""
    run(world.project, f"{DEEP}; git gc -q")
    view = view_of(world, lambda home: run(home / "project", "echo new > c/new; git add c/new"))
    before = snapshot(world.project / ".git" / "objects", times=True)
    with opened(view, world.artoo_home) as closing:
        assert not closing.difference().empty
    assert snapshot(world.project / ".git" / "objects", times=True) == before
