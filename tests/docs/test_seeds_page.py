"""`docs/seeds.md` says where each section of the seeds lives, and is right about it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "seeds.md"
ROWS = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and line != "| section | where |"]
NAMED = re.findall(r"`([^`\s]+)`", PAGE.read_text())
PATHS = sorted({name for name in NAMED if "/" in name or name.endswith(".md")})


def test_every_named_path_exists() -> None:
    """Each is a module below `src/artoo`, or a file or folder of the project."""
    assert [path for path in PATHS if not any((root / path).exists() for root in (ROOT, ROOT / "src/artoo"))] == []


def test_no_line_is_empty() -> None:
    """Each section has a place or a reason, and each of the five documents its table."""
    sections = [row.strip("|").split("|") for row in ROWS]
    assert all(len(cells) == 2 and all(cell.strip() for cell in cells) for cells in sections)
    assert PAGE.read_text().count("\n## ") == 5
    assert len(ROWS) >= 200
