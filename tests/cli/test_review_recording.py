"""The recorded review in the docs is what a terminal shows."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from review_recording import PAGE, page, record

from overlay_here import overlay_backend


def test_the_recorded_review_is_what_a_terminal_shows(tmp_path: Path) -> None:
    """Played again, it is the same but for ids and dates (review_recording.py prints the page)."""
    home = Path(os.path.realpath(tmp_path)) / "home"
    home.mkdir()
    asyncio.run(overlay_backend(home / ".artoo"))
    assert page(record(home)) == PAGE.read_text(encoding="utf-8")
