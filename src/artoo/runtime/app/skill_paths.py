"""The folder names of skills in a project and in the home, and the check if any exists.

This is a module of its own, apart from the code that reads skills, because every task makes this check.
"""

from __future__ import annotations

import os
from pathlib import Path

PROJECT_FOLDERS = (".artoo/skills", ".agents/skills", ".claude/skills")
"""Folders below a project. If two skills have the same name, the first one counts."""
HOME_FOLDER = "skills"
"""The folder below artoo's home with the user's own skills."""
COPIES = ".local/share/artoo/skills"
"""The folder below the user's home for copies of the user's own skills. Copies are needed because tasks cannot read
artoo's home."""


def any_skills(artoo_home: Path, project: Path) -> bool:
    """Return whether a folder with skills exists."""
    folders = (artoo_home / HOME_FOLDER, *(project / name for name in PROJECT_FOLDERS))
    return any(map(os.path.isdir, folders))


def opened_for_skills(artoo_home: Path, person: Path) -> tuple[Path, ...]:
    """Return the hidden folders of a user's home that tasks may read because of the user's own skills."""
    return (person / COPIES,) if (artoo_home / HOME_FOLDER).is_dir() else ()
