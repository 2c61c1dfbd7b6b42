"""A home with a project and a workspace, and the tools that work in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tool_doubles import MakeToolbox, PlainWorkspace, StillClock, roots_in

from artoo.contracts.plan import MustNot
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Workspace
from artoo.tools.approval.gate import Gate
from artoo.tools.core.default_tools import Shared, builtin_tools
from artoo.tools.core.registry import Registry, SubTaskToolbox
from artoo.tools.core.tool import Tool
from artoo.workspace.changes.path_class import Places


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    return roots_in(tmp_path)


@pytest.fixture
def places(roots: Roots) -> Places:
    return Places.of(roots, roots.home / ".artoo")


@pytest.fixture
async def workspace(roots: Roots) -> AsyncGenerator[PlainWorkspace]:
    made = PlainWorkspace(roots)
    yield made
    await made.close()


@pytest.fixture
def make_toolbox(places: Places, workspace: PlainWorkspace) -> MakeToolbox:
    """Builds a toolbox: `must_not`, `other`, and `tools` to use others than the built-in ones."""

    def make(
        must_not: MustNot | None = None, *, other: Workspace | None = None, tools: tuple[Tool, ...] | None = None
    ) -> SubTaskToolbox:
        if tools is None:
            tools = builtin_tools(Shared.of(other or workspace, Gate(), places))
        return Registry(tools, StillClock()).toolbox("subtask", must_not or MustNot())

    return make


@pytest.fixture
def toolbox(make_toolbox: MakeToolbox) -> SubTaskToolbox:
    return make_toolbox()
