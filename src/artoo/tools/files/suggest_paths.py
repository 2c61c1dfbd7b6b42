"""Where a thing that is not there might be: its name elsewhere, copies of it, names that are nearly the same."""

from __future__ import annotations

import difflib
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Files
from artoo.tools.files.paths import entry_at, entry_path, found_at, is_within, printable, shown
from artoo.tools.files.walk import Entry, Hidden, Kind, Walk, WalkLimits

_LOOK = WalkLimits(entries=20_000, seconds=1.0)
_MOST_NAMES = 4_000


@dataclass(frozen=True, slots=True)
class Nearby:
    """Paths relative to the project: the same name, a copy of it by its name, nearly the same name."""

    same: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    similar: tuple[str, ...] = ()

    @property
    def best(self) -> tuple[str, ...]:
        """What most likely is meant: the same name, else copies, else similar names."""
        return self.same or self.copies or self.similar


def nearby(name: str, entries: Iterable[Entry], *, most: int = 3) -> Nearby:
    """Looks for `name` (a path or a file name) among the project's files and directories."""
    wanted = name.rstrip("/").rsplit("/", 1)[-1]
    usable = [entry for entry in entries if entry.path != name and entry.kind is not Kind.OTHER]
    same = [entry.path for entry in usable if entry.name == wanted or entry.name.casefold() == wanted.casefold()]
    copies = [entry.path for entry in usable if _is_copy(entry.name, wanted)]
    by_name: dict[str, str] = {}
    for entry in usable:
        if entry.path not in same and entry.path not in copies and len(by_name) < _MOST_NAMES:
            by_name.setdefault(entry.name, entry.path)
    close = difflib.get_close_matches(wanted, by_name, n=most, cutoff=0.6)
    return Nearby(tuple(same[:most]), tuple(copies[:most]), tuple(by_name[one] for one in close))


def explain_missing(path: Path, roots: Roots, files: Files) -> str:
    """One sentence that says what is wrong with a path and where the thing really may be. Reads the project."""
    problem = f"there is no {shown(path, roots)}"
    found = entry_at(files, path)
    if found is not None and stat.S_ISLNK(found.mode):
        leads_to = printable(files.readlink(entry_path(files, path)))
        problem = f"{shown(path, roots)} is a broken link to {leads_to}, which does not exist"
    try:
        entries = [
            entry
            for entry in Walk(roots.project, _LOOK, files, hidden=Hidden.LAST, honour_ignore=True)
            if entry.kind is not Kind.LINK or found_at(files, roots.project / entry.path) is not None
        ]
    except ToolError:
        return problem
    near = nearby(shown(path, roots), entries)
    parts = [problem]
    if near.same:
        parts.append(f"the same name is at: {_list(near.same)}")
    if near.copies:
        parts.append(f"copies: {_list(near.copies)}")
    if near.similar and not near.same:
        parts.append(f"similar names: {_list(near.similar)}")
    if len(parts) == 1 and is_within(path, roots.project):
        parts.append("nothing with a similar name is in the project")
    return "; ".join(parts)


def _is_copy(name: str, wanted: str) -> bool:
    """`sales.csv.bak`, `sales.csv.1` and `sales.csv~` are copies of `sales.csv`."""
    return name != wanted and name.startswith(wanted) and name[len(wanted)] in "._~-"


def _list(paths: Iterable[str]) -> str:
    return ", ".join(printable(path) for path in paths)
