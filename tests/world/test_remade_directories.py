"""Directories that a task removes and makes anew: what was below them is gone, at every depth and in every part."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from sandbox_snapshots import Entry, snapshot
from sandbox_world import World
from view_world import bash, overlay_views, place_of

from artoo.world.closing import opened
from artoo.world.undo import undo
from artoo.world.view_place import Views

_DIRECTORIES = ("a", "a/b", "a/b/c", "d", "d/e")
_SEEDS = range(12)


def operation(chance: random.Random) -> str:
    """A bit of what builds, checkouts and generators do."""
    one, other, name = chance.choice(_DIRECTORIES), chance.choice(_DIRECTORIES), chance.choice("xyz")
    return chance.choice(
        (
            f"rm -rf {one}; mkdir -p {one}",
            f"rm -rf {one.partition('/')[0]}; mkdir -p {one}; echo {chance.random()} > {one}/{name}",
            f"rm -rf t; cp -r {one} t && rm -rf {one} && mv t {one}",
            f"mkdir -p {one}; echo {chance.random()} > {one}/{name}",
            f"rm -f {one}/{name}",
            f"mkdir -p {one}; mv -T {one} t && mkdir -p {other} && mv -T t {other}/{name}",
            f"rm -rf {one}; mkdir -p $(dirname {one}); echo {chance.random()} > {one}",
        )
    )


def contents(world: World) -> dict[str, Entry]:
    return snapshot(world.project)


def apply(world: World, chance: random.Random | None) -> None:
    """Some of what waits, or all of it."""
    place = Views(world.artoo_home).find("task-1")
    if place is None:
        return
    with opened(place, world.artoo_home) as view:
        found = view.difference()
        assert found.conflicts == ()
        if found.empty:
            return
        shown = [effect.shown for effect in found.effects]
        paths = None if chance is None else chance.sample(shown, min(len(shown), 2))
        view.apply(found, digest=found.digest, paths=paths)


def ran(argv: Sequence[str | Path], place: Path | None = None) -> None:
    """Waits for a command on the plain tree, however it ends."""
    subprocess.run(argv, cwd=place, check=False, capture_output=True, timeout=20)


@pytest.mark.parametrize("seed", _SEEDS)
async def test_parts_of_it_add_up_to_what_the_commands_make_of_a_plain_tree(world: World, seed: int) -> None:
    """Whatever is applied first, and whatever commands come after a part; undo brings back all of it."""
    chance = random.Random(seed)
    for place in (*_DIRECTORIES, "a/b/x", "d/e/z"):
        (world.project / place).mkdir(parents=True, exist_ok=True)
        for name in "yq":
            (world.project / place / name).write_text(f"old {place}/{name}\n")
    reference = world.home.parent / "reference"
    ran(["cp", "-a", "-T", world.project, reference])
    before = contents(world)
    for _ in range(2):
        script = "\n".join(operation(chance) for _ in range(4))
        ran(["bash", "-c", script], reference)
        view = overlay_views("bubblewrap", world)("task-1", world.roots)
        await bash(view, script)
        await view.close()
        for _ in range(chance.randrange(3)):
            apply(world, chance)
    apply(world, None)
    assert contents(world) == snapshot(reference)
    if contents(world) != before:
        assert undo(world.artoo_home, "task-1").refused == ()
    assert contents(world) == before


@pytest.mark.parametrize(
    ("script", "gone"),
    [
        ("rm -rf dist; mkdir -p dist/js; echo new > dist/js/new.js", ["index.html", "js/old.js"]),
        ("rm -rf dist; mkdir -p dist/js", ["index.html", "js/old.js"]),
        ("cp -r dist t; rm -rf dist; mv t dist; rm dist/js/old.js", ["js/old.js"]),
    ],
)
async def test_what_is_gone_below_is_shown(world: World, script: str, gone: Sequence[str]) -> None:
    """A directory inside one that was made anew hides what it held, though only the outer one says so."""
    (world.project / "dist/js").mkdir(parents=True)
    for name in ("index.html", "js/old.js"):
        (world.project / "dist" / name).write_text("old")
    view = overlay_views("bubblewrap", world)("task-1", world.roots)
    await bash(view, script)
    await view.close()
    with opened(place_of(world), world.artoo_home) as closing:
        found = closing.difference()
    shown = [
        effect.shown.removeprefix(f"{world.project}/dist/") for effect in found.effects if effect.after is None
    ]
    assert shown == gone
