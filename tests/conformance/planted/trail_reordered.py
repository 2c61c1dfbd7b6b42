"""Two lines of the audit trail change places."""

from __future__ import annotations

from pathlib import Path

from planting import FileFault


def plant(home: Path) -> None:
    trail = next((home / "audit").glob("audit-*.jsonl"))
    lines = trail.read_bytes().splitlines(keepends=True)
    lines[3], lines[4] = lines[4], lines[3]
    trail.write_bytes(b"".join(lines))


FAULT = FileFault(plant)
