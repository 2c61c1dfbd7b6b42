"""Short and absolute printable paths, relative to the current directory, with the most paths in a list.

A short path is unambiguous, and every byte of it is visible.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import path_bytes, printable_path
from artoo.contracts.settling import is_gits
from artoo.words.catalogue import Catalogue


def _printable(path: str | Path) -> str:
    return printable_path(os.fsencode(path))


def _current_directory() -> str:
    """Return the current directory as a printable path. Return an empty text if it was removed."""
    try:
        return _printable(os.getcwd())  # noqa: PTH109 (Path.cwd gives the same, and costs more)
    except FileNotFoundError:
        return ""


@dataclass(frozen=True, slots=True)
class Here:
    """The current directory and the home of the user, as printable paths."""

    directory: str = field(default_factory=_current_directory)
    home: str = field(default_factory=lambda: _printable(Path.home()))

    def short(self, path: str) -> str:
        """Return a printable absolute path relative to the current directory, or else relative to `~`. If neither
        contains it, return it unchanged.

        The conversion can be reversed: `named(short(path)) == path`.
        """
        if path == self.directory:
            return "."
        below = _below(path, self.directory)
        if below is not None:
            return f"./{below}" if below[0] in "~-" else below
        below = _below(path, self.home)
        return f"~/{below}" if below is not None else path

    def named(self, typed: str) -> str:
        """Return the printable absolute path of `typed`, whether `typed` is escaped or not."""
        if typed.startswith("~/"):
            typed = f"{self.home}/{typed[2:]}"
        absolute = os.path.normpath(typed if typed.startswith("/") else f"{self.directory}/{typed}")
        # Bytes of the argument that cannot be decoded arrive as surrogates, which become the escapes of a printable
        # path.
        return printable_path(path_bytes(os.fsencode(absolute).decode("utf-8", "backslashreplace")))

    def holds(self, typed: str, path: str) -> bool:
        """Return whether a printable absolute path is the path that `typed` names, or is below it."""
        return holds(self.named(typed), path)


def _below(path: str, directory: str) -> str | None:
    """Return the part of `path` below a directory. Return None if it is not below it. A path is never shortened by
    the root, or by a directory that is not known."""
    if directory in ("", "/"):
        return None
    return path[len(directory) + 1 :] if path.startswith(directory + "/") and path != directory + "/" else None


def holds(place: str, path: str) -> bool:
    """Return whether `path` is `place` or below it. Both are printable and absolute."""
    return path == place or path.startswith(place.rstrip("/") + "/")


PATHS_SHOWN = 6
"""Maximum number of paths in one line."""


def on_one_line(paths: Sequence[str], here: Here, words: Catalogue, rest: int = 0) -> str:
    """List the first paths, followed by the number of further ones (including `rest`) and the number of git's own
    files.

    Paths with few directories come first, so that caches do not displace the files that the user asked for.
    """
    own = sorted((path for path in paths if not is_gits(path)), key=lambda path: (path.count("/"), path))
    shown, gits = [here.short(path) for path in own[:PATHS_SHOWN]], len(paths) - len(own)
    more = len(own) - len(shown) + rest
    shown += [words("and {count} more", count=f"{more:,}")] if more > 0 else []
    shown += [words("git's own files ({count})", count=f"{gits:,}")] if gits else []
    return ", ".join(shown)
