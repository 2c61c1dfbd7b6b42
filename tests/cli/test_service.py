"""`artoo service`: the file that keeps `artoo serve` running, and the commands that start it."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from artoo.cli.main import main


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home whose name has characters that unit files read as something else."""
    home = tmp_path / "50% of $HOME"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("ARTOO_HOME", str(home / ".artoo"))
    return home


def test_a_dry_run_prints_the_unit_and_writes_nothing(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["service", "install", "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "ExecStart=" in told and '"serve"' in told and "systemctl --user enable --now artoo.service" in told
    assert not (user / ".config").exists()


def test_the_unit_is_written_and_removed(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """systemd itself finds no mistake in it, where systemd is."""
    assert main(["service", "install", "--web"]) == 0
    unit = user / ".config" / "systemd" / "user" / "artoo.service"
    text = unit.read_text()
    assert '"--web"' in text and "50%% of $$HOME" in text and "Delegate=yes" in text
    if shutil.which("systemd-analyze"):
        ended = subprocess.run(
            ["systemd-analyze", "verify", "--user", unit], capture_output=True, text=True, check=False
        )
        assert "artoo.service:" not in ended.stderr
    assert main(["service", "remove"]) == 0 and not unit.exists()
    assert main(["service", "remove"]) == 2
    assert "artoo service install" in capsys.readouterr().err


def test_a_mac_gets_a_launchd_agent(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert main(["service", "install"]) == 0
    written = plistlib.loads((user / "Library" / "LaunchAgents" / "io.artoo.serve.plist").read_bytes())
    assert written["ProgramArguments"][-1] == "serve" and written["KeepAlive"] == {"SuccessfulExit": False}
    assert written["EnvironmentVariables"]["ARTOO_HOME"] == str(user / ".artoo")
