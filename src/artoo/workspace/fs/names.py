"""Convert paths between printable text and the text of Python's os functions."""

from __future__ import annotations

import os
from pathlib import Path

from artoo.contracts.changes import path_bytes, printable_path


def printable(path: str | Path) -> str:
    """Return a path as printable text."""
    return printable_path(os.fsencode(path))


def text_of(printable: str) -> str:
    """Convert a printable path to the text that Python's os functions accept."""
    return printable if "\\" not in printable and printable.isascii() else os.fsdecode(path_bytes(printable))
