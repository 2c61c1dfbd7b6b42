"""A home with a project and a workspace, and the tools that work in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tool_doubles import MakeToolbox, PlainView, StillClock, roots_in

from artoo.contracts.plan import MustNot
from artoo.ports.sandbox import Roots
from artoo.ports.world import View
from artoo.tools.gate import Gate
from artoo.tools.registry import Registry, SubTaskToolbox
from artoo.tools.standard import builtin_tools
from artoo.tools.tool import Tool
from artoo.world.classify import Places


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    return roots_in(tmp_path)


@pytest.fixture
def places(roots: Roots) -> Places:
    return Places.of(roots, roots.home / ".artoo")


@pytest.fixture
def view(roots: Roots) -> PlainView:
    return PlainView(roots)


@pytest.fixture
def make_toolbox(roots: Roots, places: Places, view: PlainView) -> MakeToolbox:
    """Builds a toolbox: `must_not`, `other_view`, and `tools` to use others than the built-in ones."""

    def make(
        must_not: MustNot | None = None,
        *,
        other_view: View | None = None,
        tools: tuple[Tool, ...] | None = None,
    ) -> SubTaskToolbox:
        if tools is None:
            tools = builtin_tools(other_view or view, Gate(), roots.home / ".artoo", places=places)
        return Registry(tools, StillClock()).toolbox("subtask", must_not or MustNot())

    return make


@pytest.fixture
def toolbox(make_toolbox: MakeToolbox) -> SubTaskToolbox:
    return make_toolbox()
