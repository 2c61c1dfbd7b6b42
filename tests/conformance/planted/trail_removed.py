"""The audit trail is deleted."""

from __future__ import annotations

from pathlib import Path

from planting import FileFault


def plant(home: Path) -> None:
    trail = next((home / "audit").glob("audit-*.jsonl"))
    trail.unlink()


FAULT = FileFault(plant)
