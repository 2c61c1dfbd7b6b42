"""Somebody takes a line out of the audit trail."""

from __future__ import annotations

from pathlib import Path

from planting import FileFault


def plant(home: Path) -> None:
    trail = next((home / "audit").glob("audit-*.jsonl"))
    lines = trail.read_bytes().splitlines(keepends=True)
    trail.write_bytes(b"".join(lines[:4] + lines[5:]))


FAULT = FileFault(plant)
