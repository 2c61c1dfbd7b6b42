"""Somebody edits a line of the audit trail."""

from __future__ import annotations

from pathlib import Path

from planting import FileFault


def plant(home: Path) -> None:
    trail = next((home / "audit").glob("audit-*.jsonl"))
    trail.write_bytes(trail.read_bytes().replace(b"executor", b"planner", 1))


FAULT = FileFault(plant)
