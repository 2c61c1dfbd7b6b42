"""The text of `artoo --version`, with the git commit from which artoo was installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

_GIT_SECONDS = 5.0
_SHOWN = 12
"""Number of characters of a commit's hash that are shown."""


def version_line() -> str:
    """Return the line with the version, such as `artoo 0.1.0 (0123456789ab)`. If the commit is not known, it is
    left out."""
    installed = distribution("artoo")
    commit = _commit(installed)
    return f"artoo {installed.version}" + (f" ({commit[:_SHOWN]})" if commit else "")


def _commit(installed: Distribution) -> str:
    """Return the commit that the build or the installer has recorded (PEP 610). For a source tree, return the one
    that git reports."""
    built = Path(__file__).parents[1] / "commit.txt"
    if built.is_file():
        return built.read_text(encoding="utf-8").strip()
    noted: dict[str, Any] = json.loads(installed.read_text("direct_url.json") or "{}")
    if "vcs_info" in noted:
        return str(noted["vcs_info"].get("commit_id", ""))
    place = Path(__file__).parents[3]
    if not (place / ".git").exists():
        return ""
    from artoo.sandbox.reading.programs import own_environment, search_path

    git = shutil.which("git", path=search_path())
    if git is None:
        return ""
    asked = [git, "-C", str(place), "rev-parse", "HEAD"]
    try:
        said = subprocess.run(
            asked, env=own_environment(), capture_output=True, text=True, check=False, timeout=_GIT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""
