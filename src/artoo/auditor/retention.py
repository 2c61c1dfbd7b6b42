"""How much of the audit log is kept: closed chains until they are too old, or all together too large."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from artoo.auditor.chain import Head
from artoo.auditor.layout import TrailLimits, chains_in, size_of
from artoo.auditor.reconcile import head_of
from artoo.auditor.trail import is_being_written

Retired = Callable[[str, Head], None]
"""Anchors a chain as retired, before its files go."""


def retire(directory: Path, limits: TrailLimits, own: str, at: datetime, retired: Retired) -> int:
    """Removes the oldest chains that are not being written, as far as the limits ask. Returns how many. OSError."""
    chains = chains_in(directory)
    total = sum(map(size_of, chains.values()))
    removed = 0
    for chain, parts in chains.items():
        size, last = size_of(parts), datetime.fromtimestamp(parts[-1].stat().st_mtime, UTC)
        too_old = at - last > timedelta(days=limits.days)
        if chain == own or not (too_old or total > limits.total) or is_being_written(parts[-1]):
            continue
        retired(chain, head_of(parts)[0])
        for part in parts:
            part.unlink(missing_ok=True)
        total -= size
        removed += 1
    return removed
