"""A home with a project and a workspace, and the tools that work in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tool_doubles import MakeToolbox, PlainSandbox, StillClock, roots_in

from artoo.contracts.plan import MustNot
from artoo.ports.sandbox import Roots, Sandbox
from artoo.tools.commands import ReadOnlyCommands
from artoo.tools.registry import Registry, SubTaskToolbox
from artoo.tools.standard import builtin_tools
from artoo.tools.tool import Tool
from artoo.tools.writing import CreateOnly
from artoo.world.classify import Places


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    return roots_in(tmp_path)


@pytest.fixture
def places(roots: Roots) -> Places:
    return Places.of(roots, roots.home / ".artoo")


@pytest.fixture
def sandbox() -> PlainSandbox:
    return PlainSandbox()


@pytest.fixture
def make_toolbox(roots: Roots, places: Places, sandbox: PlainSandbox) -> MakeToolbox:
    """Builds a toolbox: `must_not`, `request`, `sandbox`, and `tools` to use others than the built-in ones."""

    def make(
        must_not: MustNot | None = None,
        *,
        request: str = "",
        other_sandbox: Sandbox | None = None,
        tools: tuple[Tool, ...] | None = None,
    ) -> SubTaskToolbox:
        if tools is None:
            runner = ReadOnlyCommands(other_sandbox or sandbox, roots, "task")
            tools = builtin_tools(runner, CreateOnly(roots, places), roots, roots.home / ".artoo", request)
        return Registry(tools, StillClock()).toolbox("subtask", must_not or MustNot())

    return make


@pytest.fixture
def toolbox(make_toolbox: MakeToolbox) -> SubTaskToolbox:
    return make_toolbox()
