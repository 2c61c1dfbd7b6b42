"""Names that are hidden, or that build tools, test runners and interpreters start by themselves."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import cache
from importlib import resources

from artoo.contracts.changes import is_visible

HIDDEN = "its name is hidden, and programs read such files by themselves"
INVISIBLE = "its name has characters that cannot be seen"
STARTED = "a build tool, test runner or interpreter starts it by itself"


def why_not_ordinary(parts: Sequence[bytes], *, is_directory: bool = False) -> str | None:
    """Return why the names of a path are not ordinary; None if they are."""
    for part in parts:
        if part.startswith(b"."):
            return HIDDEN
        if not _all_visible(part):
            return INVISIBLE
    *above, name = (os.fsdecode(part).casefold() for part in parts)
    files, directories = _patterns()
    whole = f"{above[-1]}/{name}" if above else name
    started = not is_directory and (files.match(name) or files.match(whole))
    return STARTED if started or any(directories.match(part) for part in (*above, name)) else None


def _all_visible(name: bytes) -> bool:
    try:
        return all(map(is_visible, name.decode()))
    except UnicodeDecodeError:
        return False


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return one expression for names of files (and `directory/file`), and one for names of directories."""
    text = resources.files("artoo.workspace.changes").joinpath("start_names.txt").read_text("utf-8")
    names = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]
    return _any_of(one for one in names if one[-1] != "/"), _any_of(one[:-1] for one in names if one[-1] == "/")


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))
