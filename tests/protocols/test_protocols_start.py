"""What nobody uses costs nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "started",
    [
        "artoo.cli.main",
        "artoo.cli.commands.run_command",
        "artoo.cli.commands.mcp_command",
        "artoo.cli.commands.team.serve_command",
        "artoo.runtime.task.start_task",
        "artoo.team.team",
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


@pytest.mark.parametrize("command", ["mcp", "acp"])
def test_standard_input_that_nobody_writes_to_is_refused_in_a_sentence(command: str, tmp_path: Path) -> None:
    """The null device is no client: no traceback of the event loop's stands before that."""
    done = subprocess.run(
        [sys.executable, "-m", "artoo", command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "ARTOO_HOME": str(tmp_path / "home")},
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "standard input and output must be pipes or a terminal" in done.stderr
    assert "Traceback" not in done.stderr
