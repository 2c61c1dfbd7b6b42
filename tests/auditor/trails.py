"""Audit logs for tests: a home with chains, written by the real trail."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from artoo.auditor.layout import TrailLimits, audit_directory, chains_in
from artoo.auditor.stats import Stats
from artoo.auditor.trail import Trail, encoded
from artoo.auditor.verify import Verification, verify

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def write_chain(
    home: Path, records: int, *, closed: bool = True, limits: TrailLimits | None = None, batch: int = 10
) -> str:
    """One chain with so many messages, anchored after every batch. Returns its name."""
    trail = Trail(audit_directory(home), limits)
    for start in range(0, records, batch):
        numbers = range(start, min(records, start + batch))
        lines = [encoded({"type": "message", "at": NOW, "id": f"m{number}", "kind": "Plan"}) for number in numbers]
        trail.write(lines, NOW + timedelta(seconds=start), anchor=True)
    if closed:
        trail.close(NOW + timedelta(seconds=records))
        Stats(audit_directory(home)).note_anchors(trail.anchors, NOW)
    elif trail._descriptor is not None:  # pyright: ignore[reportPrivateUsage]
        os.close(trail._descriptor)  # pyright: ignore[reportPrivateUsage]  # what a death does
    return trail.chain


def proved(home: Path) -> Verification:
    """What `artoo audit verify` finds."""
    return verify(audit_directory(home), home / "tasks")


def only_part(home: Path) -> Path:
    """The file of the only chain."""
    ((path,),) = chains_in(audit_directory(home)).values()
    return path
