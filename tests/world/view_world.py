"""Real views in real sandboxes: what the tests of views share."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from sandbox_world import World, first, require_tier

from artoo.ports.sandbox import Limits
from artoo.ports.world import Program, View, ViewRun
from artoo.world.opening import OpenedViews, views_in
from artoo.world.overlay import OverlaySandbox
from artoo.world.view_place import ViewPlace, Views


def overlay_views(tier: str, world: World) -> OpenedViews:
    require_tier(tier)
    world.artoo_home.mkdir(mode=0o700, exist_ok=True)
    candidate = first(tier, world.artoo_home)
    sandbox = candidate.build(candidate.stage_homes)
    views = views_in(sandbox, world.artoo_home)
    assert isinstance(views, OpenedViews) and isinstance(sandbox, OverlaySandbox)
    return views


@pytest.fixture(params=["bubblewrap", "namespaces"])
async def any_view(request: pytest.FixtureRequest, world: World) -> AsyncGenerator[View]:
    """A task's view in each tier that has overlays."""
    view = overlay_views(str(request.param), world)("task-1", world.roots)
    yield view
    await view.close()


@pytest.fixture
async def view(world: World) -> AsyncGenerator[View]:
    """A task's view in the best tier."""
    view = overlay_views("bubblewrap", world)("task-1", world.roots)
    yield view
    await view.close()


def place_of(world: World) -> ViewPlace:
    return Views(world.artoo_home).place("task-1")


async def bash(view: View, script: str, *, limits: Limits | None = None, read_only: bool = False) -> ViewRun:
    return await view.run(Program(("bash", "-c", script), limits=limits or Limits(), read_only=read_only))


async def out(view: View, script: str) -> str:
    """What a script prints, of which nothing may fail."""
    run = await bash(view, f"set -e; {script}")
    assert run.status == "ok", run
    return run.stdout.text
