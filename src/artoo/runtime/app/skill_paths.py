"""The folders of skills. A module of its own, because every task checks whether there are any. Apart from what
reads them, because every task looks whether there are any.
"""

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
    """Check whether there are skills."""
    folders = (artoo_home / HOME_FOLDER, *(project / name for name in PROJECT_FOLDERS))
    return any(map(os.path.isdir, folders))


def opened_for_skills(artoo_home: Path, person: Path) -> tuple[Path, ...]:
    """Return the hidden places of a user's home that tasks may read because of their own skills."""
    return (person / COPIES,) if (artoo_home / HOME_FOLDER).is_dir() else ()
