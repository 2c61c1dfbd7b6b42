"""Files that are there whole or not at all, whenever the process or the machine dies."""

from __future__ import annotations

import os
from pathlib import Path


def read_text(path: Path) -> str:
    """The file's text, empty when it is not there. Raises OSError, UnicodeDecodeError."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""


def write_whole(path: Path, text: str) -> None:
    """Puts a new version in the place of the old one, on disk when this returns. Raises OSError."""
    path = path.resolve()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("wb") as file:
        os.fchmod(file.fileno(), path.stat().st_mode & 0o777 if path.exists() else 0o600)
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
