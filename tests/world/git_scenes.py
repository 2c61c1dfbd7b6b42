"""Real repositories for tests: a git that knows nothing of the machine, and projects that are repositories."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from layers import view_of
from sandbox_world import World

from artoo.contracts.settling import ChangeClass
from artoo.world.difference import Difference, difference_of

ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "U",
    "GIT_AUTHOR_EMAIL": "u@example.invalid",
    "GIT_COMMITTER_NAME": "U",
    "GIT_COMMITTER_EMAIL": "u@example.invalid",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_EDITOR": "true",
    "GIT_OPTIONAL_LOCKS": "0",
    "PATH": os.environ["PATH"],
}

COMMITS = """
git init -q -b main .
for n in 1 2 3; do echo $n > f$n; git add f$n; git commit -qm "number $n"; done
git branch side; git checkout -q side; echo s > s; git add s; git commit -qm "on the side"; git checkout -q main
git tag light; git tag -a -m annotated heavy side
echo w > f1; git stash -q; echo v > f2; git stash -q
echo 4 > f4; git add f4; git commit -qm "number 4"
"""
"""Branches, tags, two stashes, and a commit on top."""

TOLD = "git for-each-ref; git reflog; git status --short; git log --all --format=%H; git stash list"
"""All that git says of such a repository."""

TWO_FILES = "git init -q -b main .; echo a > f; echo g > g; git add -A; git commit -qm base"
WHOLE = 'test -z "$(git fsck 2>&1 | grep -v dangling)"; git log --all --stat > /dev/null; git status > /dev/null'
"""Fails where something is missing."""


def run(directory: Path, script: str, more: Mapping[str, str] | None = None) -> str:
    """A script in a project, with a git that knows only this environment."""
    done = subprocess.run(
        ["bash", "-ec", script],
        cwd=directory,
        env=ENVIRONMENT | dict(more or {}) | {"HOME": str(directory)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def after(world: World, script: str) -> Difference:
    """The difference of a task that ran the script."""
    place = view_of(world, lambda home: run(home / "project", script))
    return difference_of(place, world.artoo_home)


def history(found: Difference) -> set[str]:
    """Reasons of what is history."""
    return {one.reason for one in found.classes if one.change_class is ChangeClass.HISTORY}
