"""Replace a `find` on personal folders by an index search.

Reference: SPEC section 3.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from artoo.ports.sandbox import Roots
from artoo.tools.files.paths import is_within
from artoo.tools.files.search import FILES, FileQuery
from artoo.tools.files.walk import EntryKind
from artoo.tools.shell.parser import parse_command

PERSONAL_PLACES = ("/Users", "/Volumes", "/home", "/media", "/run/media")
"""Directories in which users keep files, in addition to their home directories."""

_SILENT = re.compile(r"\s2>\s*/dev/null\s*$")
_DEPTHS = frozenset({"-maxdepth", "-mindepth"})
_KINDS = {"f": FILES, "d": frozenset({EntryKind.DIRECTORY})}


def index_query(command: str, roots: Roots) -> FileQuery | None:
    """Return the index search that gives the same result as `command`. Return None if `command` is not a pure
    search by name.

    A pure search is a single `find` outside a pipeline. All its starting points are personal directories outside of
    the project and of the output folder. It uses only -name or -iname, -type f or d, -print, -maxdepth and
    -mindepth. The index search ignores -maxdepth and -mindepth.
    """
    only = parse_command(_SILENT.sub("", command), {"HOME": str(roots.home)}).only
    if only is None or only.program != "find":
        return None
    words = [word for word in only.arguments if word is not None]
    if len(words) < len(only.arguments):
        return None
    tests = next((at for at, word in enumerate(words) if word.startswith(("-", "(", "!"))), len(words))
    folders = tuple(Path(os.path.normpath(place)) for place in words[:tests])
    if not folders or not all(folder.is_absolute() and _personal(folder, roots) for folder in folders):
        return None
    return _query(words[tests:], folders)


def _personal(place: Path, roots: Roots) -> bool:
    if is_within(place, roots.project) or is_within(place, roots.workspace):
        return False
    return is_within(place, roots.home) or any(is_within(place, Path(one)) for one in PERSONAL_PLACES)


def _query(tests: Sequence[str], folders: tuple[Path, ...]) -> FileQuery | None:
    pattern, exact_case, kinds = "", True, frozenset[EntryKind]()
    rest = [word for word in tests if word != "-print"]
    if len(rest) % 2:
        return None
    for word, value in zip(rest[::2], rest[1::2], strict=True):
        if word in ("-name", "-iname") and value and not pattern:
            pattern, exact_case = value, word == "-name"
        elif word == "-type" and value in _KINDS and not kinds:
            kinds = _KINDS[value]
        elif word not in _DEPTHS or not value.isdecimal():
            return None
    # In a name, `find` takes a brace or a slash literally, whereas a path pattern does not.
    if not pattern or "{" in pattern or "/" in pattern:
        return None
    return FileQuery(pattern, folders, kinds or frozenset(EntryKind), exact_case, indexed=True)
