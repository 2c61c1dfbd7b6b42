"""Somebody edits a line of a task log."""

from __future__ import annotations

from pathlib import Path

from planting import FileFault


def plant(home: Path) -> None:
    log = next((home / "tasks").glob("*/log.jsonl"))
    log.write_bytes(log.read_bytes().replace(b"wc -l", b"wc -c", 1))


FAULT = FileFault(plant)
