"""Removing trees of artoo's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sandbox_world import World
from view_world import bash, out

from artoo.contracts.errors import SandboxError
from artoo.ports.world import View
from artoo.world.remove import remove_tree
from artoo.world.stage import remove_orphans


def nested(place: Path, levels: int, mode: int = 0o700) -> None:
    """Directories in directories, with a file in each: deeper than a whole path could say."""
    place.mkdir()
    here = os.open(place, os.O_RDONLY)
    for _ in range(levels):
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=here))
        os.mkdir("a", dir_fd=here)
        inner = os.open("a", os.O_RDONLY, dir_fd=here)
        os.fchmod(here, mode)
        os.close(here)
        here = inner
    os.close(here)


@pytest.mark.parametrize("mode", [0o700, 0o000])
def test_any_depth_and_any_mode_goes(tmp_path: Path, mode: int) -> None:
    """A tree deeper than Python recurses, and than a path may be long, is removed, whoever may look into it."""
    nested(tmp_path / "tree", 2_200, mode)
    remove_tree(tmp_path / "tree")
    assert not list(tmp_path.iterdir())


def test_no_link_is_followed(tmp_path: Path) -> None:
    """Links go, what they lead to stays; so does what stands beside the tree."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "tree" / "inner").mkdir(parents=True)
    (tmp_path / "tree" / "inner" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    remove_tree(tmp_path / "tree")
    remove_tree(tmp_path / "link")
    remove_tree(tmp_path / "never was")
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]


def test_what_a_dead_process_left_goes_whatever_it_is(tmp_path: Path) -> None:
    """A deep tree in the place of a process that is gone stops nobody who comes after."""
    nested(tmp_path / "gone", 1_500)
    (tmp_path / "gone" / "lock").touch()
    assert remove_orphans(tmp_path) == 1
    assert not list(tmp_path.iterdir())


async def test_a_command_that_nests_without_end_stops_nothing_after_it(view: View, world: World) -> None:
    """What it did is refused with the reason; the next command works, and so does closing."""
    deep = "mkdir -p $(printf 'a/%.0s' $(seq 1500))"
    with pytest.raises(SandboxError, match="nests deeper than"):
        await bash(view, deep)
    assert await out(view, "echo x > b; ls -A") == "b\n"
    assert not list((world.artoo_home / "stage").glob("*"))
