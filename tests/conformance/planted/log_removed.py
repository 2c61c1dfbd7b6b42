"""A task log is deleted."""

from __future__ import annotations

from pathlib import Path

from planting import FileFault


def plant(home: Path) -> None:
    log = next((home / "tasks").glob("*/log.jsonl"))
    log.unlink()


FAULT = FileFault(plant)
