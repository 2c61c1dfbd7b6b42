"""What is kept of the person's files when a command changes them in its view."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sandbox_world import World

from artoo.world.base import bases_of
from artoo.world.began import Meanwhile
from artoo.world.nodes import read_state
from artoo.world.scan import Touched

ALWAYS = Meanwhile(0, 1 << 63)


def touched(path: Path) -> Touched:
    """A thing of the person's that a command changed."""
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        state = read_state(directory, path.name)
    finally:
        os.close(directory)
    assert state is not None
    return Touched((str(path.parent), path.name), str(path), state)


@pytest.mark.parametrize(
    ("name", "overtaken"),
    [
        ("notes", True),
        ("index", True),
        ("book/index", True),
        (".git/index", False),
        (".git/worktrees/other/index", False),
        (".git/refs/heads/index", True),
        ("sub/.git/index", False),
        ("sub/index", True),
    ],
)
def test_only_a_repositorys_index_may_change_while_a_command_runs(world: World, name: str, overtaken: bool) -> None:
    """Git writes it at every look, and what it stages is compared; any other file that was saved is overtaken."""
    for repository in (world.project / ".git", world.project / "sub/.git"):
        (repository / "objects").mkdir(parents=True, exist_ok=True)
        (repository / "HEAD").write_text("ref: refs/heads/main\n")
    path = world.project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if "worktrees" in name:
        (path.parent / "HEAD").write_text("ref: refs/heads/other\n")
        (path.parent / "commondir").write_text("../..\n")
    path.write_text("saved by the person\n")
    (base,) = bases_of((), [touched(path)], ALWAYS)
    assert base.overtaken is overtaken
