"""Real views in real sandboxes: what the tests of views share."""

from __future__ import annotations

import pytest
from sandbox_world import World, first, require_tier

from artoo.ports.sandbox import Limits
from artoo.ports.world import Program, View, ViewRun
from artoo.world.opening import OpenedViews
from artoo.world.overlay import OverlaySandbox
from artoo.world.view_place import ViewPlace, Views


def overlay_views(tier: str, world: World) -> OpenedViews:
    require_tier(tier)
    world.artoo_home.mkdir(mode=0o700, exist_ok=True)
    candidate = first(tier, world.artoo_home)
    sandbox = candidate.build(candidate.stage_homes)
    assert isinstance(sandbox, OverlaySandbox)
    return OpenedViews(sandbox, world.artoo_home)


@pytest.fixture(params=["bubblewrap", "namespaces"])
def any_view(request: pytest.FixtureRequest, world: World) -> View:
    """A task's view in each tier that has overlays."""
    return overlay_views(str(request.param), world)("task-1", world.roots)


@pytest.fixture
def view(world: World) -> View:
    """A task's view in the best tier."""
    return overlay_views("bubblewrap", world)("task-1", world.roots)


def place_of(world: World) -> ViewPlace:
    return Views(world.artoo_home).place("task-1")


async def bash(view: View, script: str, *, limits: Limits | None = None, read_only: bool = False) -> ViewRun:
    return await view.run(Program(("bash", "-c", script), limits=limits or Limits(), read_only=read_only))


async def out(view: View, script: str) -> str:
    """What a script prints, of which nothing may fail."""
    run = await bash(view, f"set -e; {script}")
    assert run.status == "ok", run
    return run.stdout.text
