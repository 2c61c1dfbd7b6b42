"""`artoo sandbox --seconds`: a command is stopped when its time is over, and nothing of it is applied unasked."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from overlay_here import overlay_backend


def test_what_a_stopped_command_had_changed_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is shown by `artoo diff`, and the message says that the command was stopped."""
    project = tmp_path / "home" / "project"
    project.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path / "home" / ".artoo"))
    asyncio.run(overlay_backend(tmp_path / "home" / ".artoo"))

    def artoo(*arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "artoo", *arguments]
        return subprocess.run(
            argv, cwd=project, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
        )

    stopped = artoo("sandbox", "--seconds", "2", "--", "echo x > made; sleep 60")
    assert stopped.returncode == 124
    assert "it was stopped, because it had not ended after 2 s" in stopped.stderr
    assert not list(project.iterdir())
    assert len(json.loads(artoo("status", "--json").stdout)["changes_waiting"]) == 1
    assert "+ new  made" in artoo("diff").stdout
