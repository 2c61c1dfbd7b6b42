"""The end of the audit trail is cut off."""

from __future__ import annotations

from pathlib import Path

from planting import FileFault


def plant(home: Path) -> None:
    trail = next((home / "audit").glob("audit-*.jsonl"))
    lines = trail.read_bytes().splitlines(keepends=True)
    trail.write_bytes(b"".join(lines[:-4]))


FAULT = FileFault(plant)
