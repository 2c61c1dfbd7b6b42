"""Names that are hidden, or that build tools, test runners and interpreters start by themselves."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from fnmatch import translate
from functools import cache, lru_cache
from importlib import resources

from artoo.contracts.changes import is_visible

HIDDEN = "its name is hidden, and programs read such files by themselves"
INVISIBLE = "its name has characters that cannot be seen"
STARTED = "a build tool, test runner or interpreter starts it by itself"
_WILD = frozenset("*?[")


def why_not_ordinary(parts: Sequence[bytes], *, is_directory: bool = False) -> str | None:
    """Return why the names of a path are not ordinary; None if they are."""
    above, name = tuple(parts[:-1]), parts[-1]
    if above and (reason := _why_above(above)) is not None:
        return reason
    if name.startswith(b"."):
        return HIDDEN
    if not _is_visible(name):
        return INVISIBLE
    folded = os.fsdecode(name).casefold()
    names = (folded, f"{os.fsdecode(above[-1]).casefold()}/{folded}") if above else (folded,)
    files, directories = _started()
    known = directories if is_directory else files
    return STARTED if any(one in known for one in names) else None


@lru_cache(maxsize=10_000)
def _why_above(parts: tuple[bytes, ...]) -> str | None:
    return why_not_ordinary(parts, is_directory=True)


def _is_visible(name: bytes) -> bool:
    try:
        text = name.decode()
        return text.isprintable() if text.isascii() else all(map(is_visible, text))
    except UnicodeDecodeError:
        return False


class _Names:
    """Names and patterns of names. What a set or the two ends of a name can tell needs no expression."""

    def __init__(self, listed: Sequence[str]) -> None:
        wild = [one for one in listed if _WILD & set(one)]
        self._plain = frozenset(listed).difference(wild)
        self._beginnings = tuple(one[:-1] for one in wild if one[-1] == "*" and not _WILD & set(one[:-1]))
        self._endings = tuple(one[1:] for one in wild if one[0] == "*" and not _WILD & set(one[1:]))
        simple = {*(f"{one}*" for one in self._beginnings), *(f"*{one}" for one in self._endings)}
        self._others = re.compile("|".join(translate(one) for one in wild if one not in simple) or "(?!)")

    def __contains__(self, name: str) -> bool:
        plain = name in self._plain or name.startswith(self._beginnings) or name.endswith(self._endings)
        return plain or self._others.match(name) is not None


@cache
def _started() -> tuple[_Names, _Names]:
    """Return names of files, and names of directories; either may be the last two names of a path."""
    text = resources.files("artoo.workspace.changes").joinpath("start_names.txt").read_text("utf-8")
    names = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]
    files = [one for one in names if one[-1] != "/"]
    return _Names(files), _Names([one[:-1] for one in names if one[-1] == "/"])
