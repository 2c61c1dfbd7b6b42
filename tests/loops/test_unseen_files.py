"""What commands could not see of the user's files is a fact of the result, and not only told to the model."""

from __future__ import annotations

import sys

import pytest
from scenario import World, plan, says, shell, subtask

from artoo.contracts.findings import NotSeen

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends of Linux")


async def test_a_link_into_a_hidden_place_is_named(world: World) -> None:
    """A link of the project leads to a private directory of the home."""
    private = world.project.parent / ".private"
    private.mkdir()
    (private / "notes").write_text("secret")
    (world.project / "notes").symlink_to(private / "notes")
    look = plan(subtask("look", tool="shell"))
    ended = await world.play("Look.", {"Plan": look, "ExecutorStep": [shell("ls", final=False), says("notes", 1)]})
    (fact,) = (one for one in ended.result.facts if isinstance(one, NotSeen))
    assert "notes" in fact.notes[0]
