"""New names that change what older ones mean: where only `main` is said, git tries several full names in order."""

from __future__ import annotations

import pytest
from git_scenes import after, history, run
from sandbox_world import World


@pytest.fixture
def named(world: World) -> World:
    """A repository with a branch behind it, one ahead, and a remote's names."""
    run(world.project, "git init -q -b main .; for n in 1 2; do git commit -q --allow-empty -m $n; done")
    run(world.project, "git branch behind main~1; git checkout -q -b ahead; git commit -q --allow-empty -m 3")
    run(world.project, "git checkout -q main; git update-ref refs/remotes/origin/main main~1; git tag v1")
    run(world.project, "git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main")
    return world


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("git rev-parse main~1 > .git/refs/main", "refs/main hides refs/heads/main"),
        ("git tag main ahead", "refs/tags/main hides refs/heads/main"),
        ("git branch origin/main", "refs/heads/origin/main hides refs/remotes/origin/main"),
        ("git branch origin", "refs/heads/origin hides refs/remotes/origin/HEAD"),
        ("git rev-parse main~1 > .git/refs/v1", "refs/v1 hides refs/tags/v1"),
        ("echo 'ref: refs/heads/ahead' > .git/refs/heads/main", "refs/heads/main leads to refs/heads/ahead"),
        ("git symbolic-ref refs/heads/behind refs/heads/main", "refs/heads/behind leads to refs/heads/main"),
    ],
)
def test_a_name_that_changes_what_another_means_is_history(named: World, script: str, says: str) -> None:
    """The person's next command under the old name would be about something else."""
    assert any(says in reason for reason in history(after(named, script)))


@pytest.mark.parametrize(
    "script",
    [
        "git tag v2; git branch other; git branch feature/main; git tag release/v1",
        "git update-ref refs/remotes/origin/new main; git update-ref refs/remotes/other/main main",
        "git checkout -q ahead",
        "git remote add up . ; git update-ref refs/remotes/up/main main; git config --remove-section remote.up",
        "R=refs/remotes/origin; git update-ref $R/new main; git symbolic-ref $R/HEAD $R/new",
        "git symbolic-ref refs/heads/alias refs/heads/main",
        "git commit -q --allow-empty -m 4; git notes add -m n; echo x > x; git add x; git stash -q",
    ],
)
def test_names_of_ones_own_are_silent(named: World, script: str) -> None:
    """Nothing that was there means something else."""
    assert history(after(named, script)) == set()
