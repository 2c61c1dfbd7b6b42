"""File names in `<home>/audit`, and the limits of the audit log (size of a part, size of all, age).

    <home>/audit/audit-<chain>.jsonl         a process's chain: message headers, findings, reports
                 audit-<chain>.0001.jsonl    the next part of the chain, if the previous is full
                 anchors.jsonl               heads and counts of all chains, itself a chain, shared by all processes
                 audit_stats.json            the report window and the roles' long-run figures

Files have mode 0600, the directory 0700. A chain's name begins with the time (UTC) at which its process began it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

AUDIT = "audit"
ANCHORS = "anchors.jsonl"
STATS = "audit_stats.json"

_PART = re.compile(r"audit-(?P<chain>[0-9]{8}T[0-9]{12}-[0-9a-f]{8})(?:\.(?P<part>\d{4,}))?\.jsonl")


@dataclass(frozen=True, slots=True)
class TrailLimits:
    """Limits. `part`: bytes of one file. `total`: bytes of all chains. `days`: how long closed chains are kept."""

    part: int = 64 * 1024 * 1024
    total: int = 2 * 1024 * 1024 * 1024
    days: float = 90.0


def audit_directory(home: Path) -> Path:
    """Return the Auditor's directory."""
    return home / AUDIT


def part_path(directory: Path, chain: str, part: int) -> Path:
    """Return the file of a part of a chain; parts count from 0."""
    return directory / (f"audit-{chain}.jsonl" if part == 0 else f"audit-{chain}.{part:04d}.jsonl")


def chains_in(directory: Path) -> dict[str, list[Path]]:
    """Return every chain with its existing parts in order, oldest chain first. Missing parts are skipped."""
    found: dict[str, list[tuple[int, Path]]] = {}
    if directory.is_dir():
        for path in directory.iterdir():
            match = _PART.fullmatch(path.name)
            if match is not None and path.is_file():
                found.setdefault(match["chain"], []).append((int(match["part"] or 0), path))
    return {chain: [path for _, path in sorted(parts)] for chain, parts in sorted(found.items())}


def size_of(parts: list[Path]) -> int:
    """Return the total size of these files in bytes."""
    return sum(path.stat().st_size for path in parts)
