"""Somebody edits the anchors, so that a cut trail would fit."""

from __future__ import annotations

from pathlib import Path

from planting import FileFault


def plant(home: Path) -> None:
    anchors = home / "audit" / "anchors.jsonl"
    lines = anchors.read_bytes().splitlines(keepends=True)
    anchors.write_bytes(b"".join(lines[:-1]))


FAULT = FileFault(plant)
