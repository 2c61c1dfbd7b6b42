"""Where skills lie. Apart from what reads them, because every task looks whether there are any."""

from __future__ import annotations

import os
from pathlib import Path

PROJECT_FOLDERS = (".artoo/skills", ".agents/skills", ".claude/skills")
"""Below a project; of two skills with one name the first counts."""
HOME_FOLDER = "skills"
"""Below artoo's home: the person's own."""
COPIES = ".local/share/artoo/skills"
"""Below the person's home: artoo's own home is closed to tasks."""


def any_skills(artoo_home: Path, project: Path) -> bool:
    """Whether a task has to look."""
    folders = (artoo_home / HOME_FOLDER, *(project / name for name in PROJECT_FOLDERS))
    return any(map(os.path.isdir, folders))


def opened_for_skills(artoo_home: Path, person: Path) -> tuple[Path, ...]:
    """What tasks may read of the closed part of a person's home because of their own skills."""
    return (person / COPIES,) if (artoo_home / HOME_FOLDER).is_dir() else ()
