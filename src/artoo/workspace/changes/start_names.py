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
    files, directories, deep = _started()
    known = directories if is_directory else files
    if folded in known or (above and f"{os.fsdecode(above[-1]).casefold()}/{folded}" in known.plain):
        return STARTED
    return STARTED if not is_directory and deep.match(os.fsdecode(b"/".join(parts)).casefold()) else None


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
        self.plain = frozenset(listed).difference(wild)
        self._beginnings = tuple(one[:-1] for one in wild if one[-1] == "*" and not _WILD & set(one[:-1]))
        self._endings = tuple(one[1:] for one in wild if one[0] == "*" and not _WILD & set(one[1:]))
        simple = {*(f"{one}*" for one in self._beginnings), *(f"*{one}" for one in self._endings)}
        self._others = re.compile("|".join(translate(one) for one in wild if one not in simple) or "(?!)")

    def __contains__(self, name: str) -> bool:
        plain = name in self.plain or name.startswith(self._beginnings) or name.endswith(self._endings)
        return plain or self._others.match(name) is not None


@cache
def _started() -> tuple[_Names, _Names, re.Pattern[str]]:
    """Return names of files and of directories (either may be the last two names of a path), and whole paths.

    The whole paths are those of patterns such as `test/*.js`, which mean files at any depth below the directory.
    """
    text = resources.files("artoo.workspace.changes").joinpath("start_names.txt").read_text("utf-8")
    names = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]
    files = [one for one in names if one[-1] != "/"]
    deep = {one for one in files if "/" in one and _WILD & set(one)}
    below = re.compile(f"(?:.*/)?(?:{'|'.join(map(translate, sorted(deep)))})")
    plain = [one for one in files if one not in deep]
    return _Names(plain), _Names([one[:-1] for one in names if one[-1] == "/"]), below
