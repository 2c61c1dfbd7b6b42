"""An index that git wrote anew by itself is the same index: nothing waits for it, and nothing is refused for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from layers import view_of
from sandbox_world import World
from test_git_history import COMMITS, TOLD, run

from artoo.world.closing import opened
from artoo.world.git_index import staged
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
        assert [one.path for one in view.difference().conflicts] == [str(world.project / ".git" / "index")]


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
