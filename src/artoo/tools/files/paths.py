"""Resolve paths of users and models, with quotes, `~` and links, refuse closed ones, and format file sizes."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from artoo.contracts.changes import PathClass, path_bytes, printable_path
from artoo.contracts.errors import ToolError
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Files, FileStat
from artoo.workspace.changes.path_class import Places

_MARKS = frozenset(('""', "''", "``", "\u201c\u201d", "\u201e\u201c", "\u00ab\u00bb", "\u300c\u300d"))
"""Pairs of quotation marks. Each pair contains the opening and the closing mark."""


def is_within(path: Path, folder: Path) -> bool:
    """Check whether `path` is `folder` or lies below it. Only the names are compared; links are not followed."""
    return path.is_relative_to(folder)


def absolute(text: str, roots: Roots, base: Path | None = None) -> Path:
    """Return the absolute path of `text`. `~` is the home directory. A relative path starts at `base` (by default
    the project).

    `..` is resolved by name, without following links. Raises ToolError if `text` cannot be a path.
    """
    name = text.strip().removeprefix("file://")
    if not name or "\0" in name or not encodable(name):
        raise ToolError(f"{text!r} is not a path; give the path of a file, such as notes.txt")
    for home in ("~", "$HOME", "${HOME}"):
        if name == home or name.startswith(home + "/"):
            name = str(roots.home) + name[len(home) :]
            break
    return Path(os.path.normpath((base or roots.project) / name))


def unquoted(text: str) -> str:
    """Remove quotation marks that enclose a whole path, as in `"a b.txt"`. A file whose own name begins and ends
    with such marks can be written with `./` before it.
    """
    name = text.strip()
    marks, inner = name[:1] + name[-1:], name[1:-1].strip()
    return inner if inner and marks in _MARKS and not {*marks} & {*inner} else text


def entry_path(files: Files, path: Path) -> Path:
    """Return an absolute path in which links of directories are followed. If the last component is a link, it is
    not followed. Raises OSError."""
    return files.resolve(path.parent) / path.name


def entry_at(files: Files, path: Path) -> FileStat | None:
    """Return the status of the entry at an absolute path, or None if nothing is there. If the entry is a link, the
    status is that of the link."""
    try:
        return files.stat(entry_path(files, path))
    except OSError:
        # `resolve` raises OSError if the links form a cycle
        return None


def found_at(files: Files, path: Path) -> FileStat | None:
    """Return the status of the file at an absolute path, or None if nothing is there. All links are followed."""
    try:
        return files.stat(files.resolve(path))
    except OSError:
        return None


def is_directory(files: Files, path: Path) -> bool:
    """Check whether an absolute path leads to a directory."""
    found = found_at(files, path)
    return found is not None and stat.S_ISDIR(found.mode)


def existing(text: str, roots: Roots, files: Files) -> Path:
    """Return the existing path that a user or a model means. It is searched in the project, then in the workspace
    directory.

    Escaped (printable) paths and paths in quotation marks are tried too. If none of these paths exists, return the
    path in the project.
    """
    first = absolute(text, roots)
    candidates = [first, absolute(text, roots, roots.workspace)]
    if "\\" in text:
        candidates.append(absolute(os.fsdecode(path_bytes(text)), roots))
    if (bare := unquoted(text)) != text:
        candidates += [first := absolute(bare, roots), absolute(bare, roots, roots.workspace)]
    return next((path for path in candidates if entry_at(files, path) is not None), first)


def shown(path: Path, roots: Roots) -> str:
    """Return a path as records show it. It is relative to the project if it is inside, otherwise absolute, and
    always printable."""
    if path != roots.project and is_within(path, roots.project):
        return printable(str(path.relative_to(roots.project)))
    return printable(str(path))


def closed_reason(path: Path, roots: Roots) -> str:
    """Explain why tools do not touch a closed path, and name the option that would open it."""
    return (
        f"{shown(path, roots)} is closed to tools: artoo's own records, the hidden part of a home, or what other "
        "users of this machine may not read; only the person can open it, in a terminal: "
        f"--allow 'read {in_home(path, roots)}'"
    )


def in_home(path: Path, roots: Roots) -> str:
    """Write a path as a user would write it, which begins with `~` if it is in the home directory."""
    if path != roots.home and is_within(path, roots.home):
        return printable(f"~/{path.relative_to(roots.home)}")
    return printable(path)


def printable(path: str | Path) -> str:
    """Write a path in one line of printable text, whatever bytes it contains."""
    text = str(path)
    return printable_path(text.encode("utf-8", "surrogateescape" if encodable(text) else "replace"))


def encodable(text: str) -> bool:
    """Check whether text can be a path or an argument. It cannot if it contains a lone surrogate that is not an
    escaped byte."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def size_text(size: int) -> str:
    """Format a size for a user. A size below 10,000 bytes is exact."""
    if size < 10_000:
        return f"{size} B"
    value, units = float(size), iter("kMGT")
    unit = ""
    while value >= 1_000 and (following := next(units, None)) is not None:
        value, unit = value / 1_000, following
    return f"{value:.3g} {unit}B"


_CLOSED: Mapping[PathClass, str] = {
    PathClass.ARTOO: "artoo's own records, not shown",
    PathClass.SECRET: "in the closed part of the home, where credentials may be; not shown",
    PathClass.PERSISTENCE: "a start-up file or settings of a program, closed, not shown",
}


def withheld(real: Path, places: Places) -> str | None:
    """Return the notice that replaces the content of a closed file at a resolved path. Return None if the content
    may be shown."""
    # A hidden file in an open directory, such as `~/.bashrc`, may be shown if the user has no such file, because
    # the task wrote it.
    if not places.is_hidden(os.fsencode(real)):
        return None
    if not places.is_hidden(os.fsencode(real.parent)) and not os.path.lexists(real):
        return None
    return closed_as(places.classify(os.fsencode(real)))


def closed_as(path_class: PathClass) -> str:
    """Return the notice for a closed path of this class."""
    return _CLOSED.get(path_class, "in a closed place, not shown")
