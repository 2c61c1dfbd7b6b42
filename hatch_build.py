"""Put the commit into wheel and sdist, so that an installed `artoo --version` names it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface[Any]):
    """Adds artoo/commit.txt. A tree without git, such as an unpacked sdist, keeps the file that it has."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See hatchling. An editable install asks git when it runs, and gets no file."""
        commit = _commit(Path(self.root)) if version != "editable" else ""
        if commit:
            note = Path(tempfile.mkdtemp()) / "commit.txt"
            note.write_text(commit, encoding="utf-8")
            inside = "artoo" if self.target_name == "wheel" else "src/artoo"
            build_data["force_include"][str(note)] = f"{inside}/commit.txt"


def _commit(root: Path) -> str:
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return ""
    asked = [git, "-C", str(root), "rev-parse", "HEAD"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False)
    return said.stdout.strip() if said.returncode == 0 else ""
