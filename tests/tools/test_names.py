"""Names of tools that somebody writes down before there is a task."""

from __future__ import annotations

from pathlib import Path

import pytest
from tool_doubles import PlainWorkspace

from artoo.contracts.errors import ConfigurationError
from artoo.ports.sandbox import Roots
from artoo.tools.approval.gate import Gate
from artoo.tools.core.default_tools import Machine, Shared, builtin_tools, reaching_tools
from artoo.tools.core.tool_names import BUILTIN_NAMES, check_identities
from artoo.workspace.changes.path_class import Places


def test_every_tool_has_its_name_in_the_list(roots: Roots, tmp_path: Path) -> None:
    """Those of any platform; letters go by tools that only agents of a team have."""
    everything = Machine("darwin", lambda name: f"/usr/bin/{name}")
    tools = (
        *builtin_tools(Shared.of(PlainWorkspace(roots), Gate(), Places.of(roots, tmp_path)), everything),
        *reaching_tools(Gate(), roots, {}, everything),
    )
    assert {tool.spec.name for tool in tools} | {"send_mail", "ask_agent"} == set(BUILTIN_NAMES)


def test_what_would_prohibit_nothing_is_refused() -> None:
    """Tools, programs of the shell and tools of servers pass; other names are told from what there is."""
    check_identities(["shell", "shell:curl", "mcp:notes:add", "python"])
    for name in ("notool", "shell:", "python:x", "curl", ""):
        with pytest.raises(ConfigurationError, match="there is no tool"):
            check_identities([name])
