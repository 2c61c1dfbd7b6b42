"""A view whose process is killed at any change on disk stands at a boundary again: before the act, or after it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import view_victim
from sandbox_world import require_tier

from artoo.ports.world import Files
from artoo.world.boundary import views_to_boundary
from artoo.world.landing import notes_of
from artoo.world.recover import recover
from artoo.world.view_place import Views

Tree = dict[str, tuple[int, bytes]]


def tree_of(files: Files, directory: Path) -> Tree:
    """All that readers see: mode, and content or target."""
    found: Tree = {}
    for name in files.names(directory):
        path = directory / name
        place = files.at(path)
        assert place is not None
        seen = place.lstat()
        if place.is_symlink():
            found[str(path)] = (0, bytes(place.readlink()))
        elif place.is_dir():
            found[str(path)] = (seen.st_mode, b"")
            found |= tree_of(files, path)
        else:
            found[str(path)] = (seen.st_mode, place.read_bytes())
    return found


def seen_in(home: Path) -> Tree:
    project = home / "project"
    found = tree_of(view_victim.a_view(home).files, project)
    return {path.removeprefix(str(project)): what for path, what in found.items()}


def noted_in(home: Path) -> set[str]:
    return set(notes_of(Views(home / ".artoo").place("victim")))


class Victim:
    """The process, and the home that it copies for each act."""

    def __init__(self, home: Path, act: str) -> None:
        self.home = home
        (home / "project").mkdir(parents=True)
        view_victim.fill(home / "project")
        asyncio.run(view_victim.prepare(home, act))
        self.process = subprocess.Popen(
            [sys.executable, str(Path(view_victim.__file__)), str(home), act],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def cut_at(self, fuse: int) -> tuple[Path, bool]:
        """The home after the act that was cut at its Nth change, and whether it was."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{fuse}\n")
        self.process.stdin.flush()
        return self.home.with_name(f"{self.home.name}-{fuse}"), self.process.stdout.readline() == "cut\n"


@pytest.fixture(params=["command", "join"])
def victim(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Victim]:
    require_tier("bubblewrap")
    started = Victim(tmp_path.resolve() / "home", str(request.param))
    yield started
    started.process.communicate(timeout=30)


def check(victim: Victim, first: int, step: int) -> int:
    """Cuts the act at every `step`th change; how often."""
    after_home, cut = victim.cut_at(0)
    assert not cut
    before, after = seen_in(victim.home), seen_in(after_home)
    real = tree_of(view_victim.a_view(victim.home.with_name("none")).files, victim.home / "project")
    assert before != after
    noted_before, noted_after = noted_in(victim.home), noted_in(after_home)
    assert noted_after == noted_before | ({"second"} if "first" in noted_before else set())
    outcomes: set[bool] = set()
    for count in range(first, 2_000, step):
        home, cut = victim.cut_at(count)
        recover(home / ".artoo")
        seen = seen_in(home)
        assert seen in (before, after), f"cut at {count}: {seen}"
        assert noted_in(home) == (noted_after if seen == after else noted_before), f"cut at {count}"
        if not cut:
            assert seen == after
            return len(outcomes)
        outcomes.add(seen == after)
        commands = list((home / ".artoo" / "views" / "victim" / "commands").iterdir())
        assert commands == []
        assert {path.name for path in (home / "project").iterdir()} == {
            Path(path).name for path in real if path.count("/") == str(victim.home).count("/") + 2
        }
        shutil.rmtree(home)
    raise AssertionError("the act never came to its end")


def test_killed_at_some_changes(victim: Victim) -> None:
    """Killed at every 23rd change on disk: before or after, never in between, and nothing is left on its way."""
    check(victim, 5, 23)


@pytest.mark.torture
def test_killed_at_every_change(victim: Victim) -> None:
    """Killed at every single change on disk."""
    assert check(victim, 1, 1) == 2


def test_a_view_that_was_cut_while_made_is_no_view(tmp_path: Path) -> None:
    """A directory without its record goes; a held one is left alone."""
    home = tmp_path.resolve() / ".artoo"
    (home / "views" / "cut" / "tmp").mkdir(parents=True)
    views_to_boundary(home)
    assert list((home / "views").iterdir()) == []
