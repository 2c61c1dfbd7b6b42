"""What is kept of the person's files when a command changes them in its view."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sandbox_world import World
from view_world import out, place_of

from artoo.ports.world import View
from artoo.tools.review import review_of
from artoo.world.base import bases_of
from artoo.world.began import Meanwhile
from artoo.world.difference import difference_of
from artoo.world.nodes import read_state
from artoo.world.scan import Touched
from artoo.world.union import RealFiles, Union

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


async def test_what_is_saved_before_the_first_change_is_what_the_task_goes_on_with(
    view: View, world: World
) -> None:
    """It is the base, and the review shows what of it goes; what is saved after that change is a conflict."""
    notes = world.project / "notes"
    notes.write_text("read\n")
    assert await out(view, "cat notes; echo begun > log") == "read\n"
    notes.write_text("saved\n")
    assert await out(view, "cat notes") == "saved\n"
    await out(view, "echo written > notes")
    await view.close()
    found = difference_of(place_of(world), world.artoo_home)
    assert not found.conflicts
    review = review_of(found, "task-1", RealFiles(), Union(place_of(world).strata()))
    assert any("-saved" in (one.diff or "") for one in review.changes)
    notes.write_text("saved later\n")
    assert [one.path for one in difference_of(place_of(world), world.artoo_home).conflicts] == [str(notes)]
