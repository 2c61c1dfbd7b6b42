"""What nobody uses costs nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "started",
    [
        "artoo.cli.main",
        "artoo.cli.run_command",
        "artoo.cli.mcp_command",
        "artoo.cli.acp_command",
        "artoo.cli.a2a_command",
        "artoo.runtime.beginning",
        "artoo.runtime.team.team",
    ],
)
def test_no_command_loads_a_protocol_before_it_serves(started: str) -> None:
    """Neither the room nor an SDK is imported by the command line, a task's command, or the commands that serve;
    nor where tasks begin and the team works."""
    loaded = "[name for name in sys.modules if name.split('.')[0] in {'mcp', 'acp', 'a2a', 'httpx'}"
    loaded += " or name.startswith('artoo.protocols')]"
    code = f"import sys, {started}; print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
