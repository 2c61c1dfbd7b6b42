"""Delete closed chains of the audit log that exceed the age and size limits of `auditor.layout`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from artoo.auditor.chain import Head, link_of
from artoo.auditor.files import last_line, open_for_reading
from artoo.auditor.layout import TrailLimits, chains_in, size_of
from artoo.auditor.trail import is_being_written

Retired = Callable[[str, Head], None]
"""Anchors that a chain is retired. This is called before the files of the chain are removed."""


def retire(directory: Path, limits: TrailLimits, own: str, at: datetime, retired: Retired) -> int:
    """Remove the oldest chains that are not being written, until the limits are met. Return the number of removed
    chains. Raises OSError."""
    chains = chains_in(directory)
    total = sum(map(size_of, chains.values()))
    removed = 0
    for chain, parts in chains.items():
        size, last = size_of(parts), datetime.fromtimestamp(parts[-1].stat().st_mtime, UTC)
        too_old = at - last > timedelta(days=limits.days)
        if chain == own or not (too_old or total > limits.total) or is_being_written(parts[-1]):
            continue
        # The anchor is written before the files are removed, so that after a crash the chain does not seem to be
        # missing.
        retired(chain, head_of(parts))
        for part in parts:
            part.unlink(missing_ok=True)
        total -= size
        removed += 1
    return removed


def head_of(parts: list[Path]) -> Head:
    """Return the head of a chain. Raises OSError."""
    with open_for_reading(parts[-1]) as (descriptor, size):
        line = last_line(descriptor, size)
    link = link_of(line) if line is not None else None
    return Head() if link is None else Head(link.number, link.hash)
