"""The harmless part of git's settings that commands may read, with its allowed keys.

A file with any other setting stays closed, and commands get an extract of it instead. For example, the extract
contains the name for commits, but no credential helper, header, or token in an address. If a command changes an
open file, the change needs approval at the end of the task. The settings of package indexes are closed, because
their addresses may contain tokens. A policy line can open them.
"""

from __future__ import annotations

import os
import re
import subprocess
from functools import lru_cache
from pathlib import Path

from artoo.ports.sandbox import Roots
from artoo.sandbox.reading.programs import find_program, search_path, worked_in

_SETTINGS = (".config/git/config", ".gitconfig")
"""The settings files, in the order in which git reads them. A later value replaces an earlier one."""
OPEN_FILES = (
    ".config/git/ignore",
    ".config/git/attributes",
    ".gitignore",
    ".gitignore_global",
    ".gitattributes",
)
"""Files in a home that git reads and that contain nothing but patterns."""
_EXTRACT = ".gitconfig"
_MOST_BYTES = 64 * 1024
_SECONDS = 5.0

_HARMLESS = re.compile(
    r"user\.(name|email)|init\.(defaultbranch)|core\.(autocrlf|eol|safecrlf|filemode|ignorecase|precomposeunicode"
    r"|quotepath|symlinks|whitespace|abbrev|excludesfile|attributesfile|editor|pager|longpaths)"
    r"|(color|column|advice|push|pull|merge|diff|rebase|fetch|log|status|branch|tag|rerere|grep|blame|commit|feature"
    r"|help|stash|submodule|versionsort|gc|index|apply|format|interactive|pack|protocol|transfer|maintenance)"
    r"\.[a-z0-9]+|color\.[a-z]+\.[a-z0-9]+|safe\.directory"
)
"""Keys that only control how git looks and behaves. Any other key, or the name of a section, may contain an
address."""


def open_settings(home: str, roots: Roots) -> tuple[str, ...]:
    """Return the files of git in a resolved home that are open. These are files with patterns (which may not exist)
    and settings."""
    harmless = (
        path for path in (f"{home}/{name}" for name in _SETTINGS) if _is_all_harmless(_settings(path, roots))
    )
    return (*(f"{home}/{name}" for name in OPEN_FILES), *harmless)


def lay_git_extract(roots: Roots, scratch: Path, seen_at: str) -> dict[str, str]:
    """Write the harmless part of closed settings into the scratch directory. Return the environment variable that
    makes git read it.

    `seen_at`: the path at which commands see the scratch directory. If an earlier command put a link at the place
    of the file, the link is not followed, because it is deleted and the file is created exclusively. Nothing is
    written if all settings are open.
    """
    read = [_settings(f"{roots.home}/{name}", roots) for name in _SETTINGS]
    if all(one is None or _is_all_harmless(one) for one in read):
        return {}
    place = scratch / _EXTRACT
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        # An earlier command may have put a link there, which must not be followed.
        place.unlink(missing_ok=True)
        with open(os.open(place, flags, 0o644), "w", encoding="utf-8") as file:
            pairs = (pair for one in read for pair in one or ())
            file.writelines(_in_git_words(key, value) for key, value in pairs if _is_harmless(key, value))
    except OSError:  # for example, the place is a directory; git then reports that the name for commits is missing
        return {}
    return {"GIT_CONFIG_GLOBAL": f"{seen_at}/{_EXTRACT}"}


def _settings(path: str, roots: Roots) -> tuple[tuple[str, str], ...] | None:
    """Return keys and values as git reads them. Return None if git cannot read the file or if it does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return _read_by_git(path, (status.st_ino, status.st_size, status.st_mtime_ns), worked_in(roots))


@lru_cache(maxsize=16)
def _read_by_git(
    path: str, stamp: tuple[int, int, int], apart: tuple[str, ...]
) -> tuple[tuple[str, str], ...] | None:
    git = find_program("git", apart)
    if git is None or stamp[1] > _MOST_BYTES:
        return None
    try:
        done = subprocess.run(
            (git, "config", "--file", path, "--no-includes", "--null", "--list"),
            capture_output=True,
            timeout=_SECONDS,
            check=True,
            env={"PATH": search_path(apart)},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    pairs = (one.partition("\n") for one in done.stdout.decode("utf-8", "replace").split("\0") if one)
    return tuple((key, value) for key, _, value in pairs)


def _is_all_harmless(settings: tuple[tuple[str, str], ...] | None) -> bool:
    return settings is not None and all(_is_harmless(key, value) for key, value in settings)


def _is_harmless(key: str, value: str) -> bool:
    return bool(_HARMLESS.fullmatch(key)) and "://" not in value and not value.startswith("!")


def _in_git_words(key: str, value: str) -> str:
    section, _, name = key.rpartition(".")
    section, _, inner = section.partition(".")
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    head = f'{section} "{inner}"' if inner else section
    return f'[{head}]\n\t{name} = "{quoted}"\n'
