"""Suggest up to three existing paths for a missing one."""

from __future__ import annotations

import difflib
import stat
from collections.abc import Iterable
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Files
from artoo.tools.files.paths import entry_at, entry_path, found_at, is_within, printable, shown
from artoo.tools.files.walk import EntryKind, Walk, WalkEntry, WalkLimits

_LOOK = WalkLimits(entries=20_000, seconds=1.0)
_MOST_NAMES = 4_000
_MOST = 3


def nearby(name: str, entries: Iterable[WalkEntry]) -> tuple[str, ...]:
    """Return the paths that are most likely meant by `name`, which is a path or a file name."""
    # The same name in another place comes before a copy (`sales.csv.bak`, `sales.csv~`), and a copy comes before a
    # similar name.
    wanted = name.rstrip("/").rsplit("/", 1)[-1]
    usable = [entry for entry in entries if entry.path != name and entry.kind is not EntryKind.OTHER]
    same = [entry.path for entry in usable if entry.name.casefold() == wanted.casefold()]
    if same:
        return tuple(same[:_MOST])
    copies = [one.path for one in usable if one.name.startswith(wanted) and one.name[len(wanted)] in "._~-"]
    if copies:
        return tuple(copies[:_MOST])
    by_name = {entry.name: entry.path for entry in reversed(usable[:_MOST_NAMES])}
    return tuple(by_name[one] for one in difflib.get_close_matches(wanted, by_name, n=_MOST, cutoff=0.6))


def explain_missing(path: Path, roots: Roots, files: Files) -> str:
    """Explain in one sentence why a path cannot be used, and which existing path may be meant. Reads the project's
    directories."""
    problem = f"there is no {shown(path, roots)}"
    found = entry_at(files, path)
    if found is not None and stat.S_ISLNK(found.mode):
        leads_to = printable(files.readlink(entry_path(files, path)))
        problem = f"{shown(path, roots)} is a broken link to {leads_to}, which does not exist"
    try:
        entries = [
            entry
            for entry in Walk(roots.project, _LOOK, files, hidden="last", honour_ignore=True)
            if entry.kind is not EntryKind.LINK or found_at(files, roots.project / entry.path) is not None
        ]
    except ToolError:
        return problem
    near = nearby(shown(path, roots), entries)
    if near:
        return f"{problem}; nearest: {', '.join(map(printable, near))}"
    return (
        f"{problem}; nothing with a similar name is in the project" if is_within(path, roots.project) else problem
    )
