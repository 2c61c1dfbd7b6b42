"""Somebody takes a line out of a task log."""

from __future__ import annotations

from pathlib import Path

from planting import FileFault


def plant(home: Path) -> None:
    log = next((home / "tasks").glob("*/log.jsonl"))
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:5] + lines[6:]))


FAULT = FileFault(plant)
