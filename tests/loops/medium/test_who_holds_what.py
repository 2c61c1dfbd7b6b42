"""What roles are given: whoever plans or judges has no way to run a tool."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import artoo.loops.medium as medium

ROOMS = sorted(Path(str(medium.__file__)).parent.glob("*.py"))


@pytest.mark.parametrize("module", ROOMS, ids=lambda path: path.stem)
def test_the_medium_loop_knows_tools_by_description_alone(module: Path) -> None:
    """No role of the medium loop, R2 and R7 among them, so much as names what runs a tool."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    named = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "artoo.ports.tools"
        for alias in node.names
    }
    assert not named & {"Tools", "Toolbox", "Ticket"}
