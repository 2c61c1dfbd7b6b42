"""Where a link leads: what the kernel would open, asked of the files as they would be."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from artoo.contracts.changes import PathClass
from artoo.ports.workspace import Files
from artoo.workspace.changes.path_class import Places

_MOST_STEPS = 1_000
"""Steps of a link's path. More of them are taken for a path that leads out."""


def leads_out(path: bytes, target: bytes, places: Places, files: Files) -> bool:
    """True if a link leads out of project and output folder, to a sensitive path in them, or in a circle.

    `path` is the link's own; everything above it is resolved.
    """
    start = os.path.dirname(os.fsdecode(path))
    joined = os.path.join(start, os.fsdecode(target))
    try:
        if any(step == "/proc" or step.startswith("/proc/") for step in _steps(joined, files)):
            return True  # the same name is another thing for every process that asks
        end = files.resolve(Path(joined))
    except OSError:
        return True
    return places.classify(os.fsencode(end)) not in (PathClass.PROJECT, PathClass.WORKSPACE)


def _steps(path: str, files: Files) -> list[str]:
    """Return the resolved path before each name of a path, and of each link that it goes through."""
    found: list[str] = []
    waiting = [path]
    while waiting:
        here = waiting.pop()
        parts = here.split("/")
        for end in range(2, len(parts) + 1):
            name = parts[end - 1]
            if name in ("", ".", ".."):
                continue
            step = files.resolve(Path("/".join(parts[: end - 1]) or "/")) / name
            found.append(str(step))
            if len(found) >= _MOST_STEPS:
                return ["/proc"]
            seen = files.stat(step)
            if seen is not None and stat.S_ISLNK(seen.mode):
                text = str(files.readlink(step))
                if text.startswith("/"):
                    waiting.append(text)
    return found
