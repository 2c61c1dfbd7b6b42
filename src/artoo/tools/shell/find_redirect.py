"""`find` on personal files becomes an index search (SPEC section 3): the same answer, without reading the disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from artoo.ports.sandbox import Roots
from artoo.tools.files.filename_index import FileKind, FileQuery
from artoo.tools.files.paths import is_within
from artoo.tools.shell.parser import ShellCommand, parse_command

PERSONAL_PLACES = ("/Users", "/Volumes", "/home", "/media", "/run/media")
"""Where people keep files, besides their home directory."""

_DEPTHS = frozenset({"-maxdepth", "-mindepth"})
_KINDS = {"f": FileKind.FILE, "d": FileKind.DIRECTORY}


def index_query(command: str, roots: Roots) -> FileQuery | None:
    """The index search that answers `command`, or None when it is anything but a pure search by name.

    Pure: one `find`, not in a pipeline, all starting points personal and outside project and workspace, and no
    test or action besides -name or -iname, -type f or d, -print, -maxdepth and -mindepth (both are stripped).
    """
    parsed = parse_command(command, {"HOME": str(roots.home)})
    words = _find_words(parsed)
    if words is None:
        return None
    places: list[str] = []
    while len(places) < len(words) and not words[len(places)].startswith(("-", "(", "!")):
        places.append(words[len(places)])
    folders = tuple(Path(os.path.normpath(place)) for place in places)
    if not folders or not all(folder.is_absolute() and _personal(folder, roots) for folder in folders):
        return None
    return _query(words[len(places) :], folders)


def _find_words(parsed: ShellCommand) -> Sequence[str] | None:
    """The arguments of the one `find` that the command is, all known; errors may go to /dev/null."""
    only = parsed.only
    if only is None or only.name is None or only.name.rsplit("/", 1)[-1] != "find":
        return None
    for redirection in parsed.redirections:
        if redirection.path != "/dev/null" or redirection.descriptor != "2":
            return None
    words = [word for word in only.arguments if word is not None]
    return words if len(words) == len(only.arguments) else None


def _personal(place: Path, roots: Roots) -> bool:
    if is_within(place, roots.project) or is_within(place, roots.workspace):
        return False
    return is_within(place, roots.home) or any(is_within(place, Path(one)) for one in PERSONAL_PLACES)


def _query(tests: Sequence[str], folders: tuple[Path, ...]) -> FileQuery | None:
    pattern: str | None = None
    exact_case = True
    kind = FileKind.ANY
    position = 0
    while position < len(tests):
        word, value = tests[position], tests[position + 1] if position + 1 < len(tests) else None
        position += 2
        if word == "-print":
            position -= 1
        elif word in ("-name", "-iname") and value and pattern is None:
            pattern, exact_case = value, word == "-name"
        elif word == "-type" and value in _KINDS and kind is FileKind.ANY:
            kind = _KINDS[value]
        elif word not in _DEPTHS or value is None or not value.isdecimal():
            return None
    if pattern is None:
        return None
    if "{" in pattern or "/" in pattern:  # `find` reads neither as a pattern of paths does
        return None
    return FileQuery(pattern, folders, kind, exact_case, indexed=True)
