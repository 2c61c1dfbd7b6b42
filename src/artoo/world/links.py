"""Where a link leads: what the kernel would open, asked of the files as they would be."""

from __future__ import annotations

import os
from pathlib import Path

from artoo.contracts.changes import PathClass
from artoo.ports.world import Files
from artoo.world.classify import Places
from artoo.world.git_layout import is_bookkeeping

_OF_PROGRAMS = (PathClass.HOME, PathClass.OUTSIDE, PathClass.PERSISTENCE)
"""Where programs lie; those of PATH are persistence."""
_PROGRAM_STARTS = (b"\x7fELF", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe")


def leads_out(path: bytes, target: bytes, places: Places, files: Files) -> bool:
    """Whether a link leads out of project and workspace, or to a sensitive path in them.

    `path` is the link's own, of which everything above is resolved. A link to a compiled program of somebody is
    none: virtual environments are made of them, and whoever writes through one is asked about the program.
    """
    end = _end(path, target, files)
    if end is None:
        return True
    raw = os.fsencode(end)
    if is_bookkeeping(raw):
        return True
    where = places.classify(raw)
    if where in _OF_PROGRAMS and _is_compiled_program(end):
        return False
    return where not in (PathClass.PROJECT, PathClass.WORKSPACE)


def _end(path: bytes, target: bytes, files: Files) -> Path | None:
    """None: it leads in a circle, or to a place that is another one for everybody who asks."""
    start = Path(os.fsdecode(os.path.dirname(path)))
    joined = os.path.join(start, os.fsdecode(target))
    try:
        if any(_depends_on_who_asks(part) for part in _steps(joined, files)):
            return None
        return files.resolve(Path(joined))
    except OSError:
        return None


def _steps(path: str, files: Files) -> list[str]:
    """The resolved place before each name of a path, and before each of the links that it goes through."""
    found: list[str] = []
    waiting = [path]
    while waiting:
        here = waiting.pop()
        parts = here.split("/")
        for end in range(2, len(parts) + 1):
            above = files.resolve(Path("/".join(parts[: end - 1]) or "/"))
            name = parts[end - 1]
            if name in ("", ".", ".."):
                continue
            place = files.at(above / name)
            found.append(str(above / name))
            if place is not None and place.is_symlink() and len(found) < 1_000:
                text = os.readlink(place)
                if text.startswith("/"):
                    waiting.append(text)
        if len(found) >= 1_000:
            return ["/proc"]
    return found


def _depends_on_who_asks(place: str) -> bool:
    """The kernel's view of processes: the same name is another thing for another process."""
    return place == "/proc" or place.startswith("/proc/")


def _is_compiled_program(path: Path) -> bool:
    try:
        if not path.is_file() or not os.access(path, os.X_OK):
            return False
        with path.open("rb") as file:
            return file.read(4) in _PROGRAM_STARTS
    except OSError:
        return False
