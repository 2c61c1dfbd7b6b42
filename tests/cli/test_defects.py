"""What artoo did not foresee is kept for whoever mends it, and does not fill the disk."""

from __future__ import annotations

import os
from pathlib import Path

from artoo.cli.crash_report import kept


def test_the_defects_of_the_latest_processes_are_kept(home: Path) -> None:
    """A command that is started every minute and fails every time leaves a hundred files, its last among them."""
    place = home / "defects"
    place.mkdir(parents=True)
    for number in range(130):
        (place / f"0{number}.txt").write_text("x")
        os.utime(place / f"0{number}.txt", (number, number))
    assert f"{os.getpid()}.txt" in kept(ValueError("unforeseen"))
    found = {one.name for one in place.iterdir()}
    assert len(found) == 100 and {f"{os.getpid()}.txt", "0129.txt"} <= found and "030.txt" not in found
