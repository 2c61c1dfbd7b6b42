"""Files of settings that commands may read: only while everything in them is known to be harmless.

`.gitconfig` is open while it holds nothing but the keys below. Else it stays closed and commands get an extract
(`lay_git_extract`): a name for commits is needed, a credential helper, a header or a token in an address is not.
"""

from __future__ import annotations

import os
import re
import subprocess
from functools import lru_cache
from pathlib import Path

from artoo.ports.sandbox import Roots
from artoo.sandbox.reading.programs import find_program, search_path, worked_in

_GIT_SETTINGS = (".gitconfig", ".config/git/config")
_GIT_PLAIN_FILES = (
    ".config/git/ignore",
    ".config/git/attributes",
    ".gitignore",
    ".gitignore_global",
    ".gitattributes",
)
_INDEX_SETTINGS = (".pip/pip.conf", ".config/pip/pip.conf", ".config/uv/uv.toml", ".condarc")
_MOST_SETTINGS = 64 * 1024
_SECONDS = 5.0

EXTRACT = ".gitconfig"
"""The name of the extract in a command's scratch."""

_HARMLESS_GIT = re.compile(
    r"user\.(name|email)|init\.(defaultbranch)|core\.(autocrlf|eol|safecrlf|filemode|ignorecase|precomposeunicode"
    r"|quotepath|symlinks|whitespace|abbrev|excludesfile|attributesfile|editor|pager|longpaths)"
    r"|(color|column|advice|push|pull|merge|diff|rebase|fetch|log|status|branch|tag|rerere|grep|blame|commit|feature"
    r"|help|stash|submodule|versionsort|gc|index|apply|format|interactive|pack|protocol|transfer|maintenance)"
    r"\.[a-z0-9]+|color\.[a-z]+\.[a-z0-9]+|safe\.directory"
)
"""Keys that say how git looks and behaves. Any other key, a section's own name included, may hold an address."""

_OPEN_INDEX_LINE = re.compile(
    r"\s*(\[[\w.\"' -]+\]\]?|\[\[[\w.-]+\]\]|[#;].*|[\w.-]+\s*[=:]\s*|-\s+[\w./:-]+"
    r"|[\w.-]+\s*[=:]\s*[\"']?[\w.,/ :~+-]*[\"']?"
    r"|\s+[\w.,/:~+-]+)?\s*",
    re.ASCII,
)
"""A line of such a file without anything that could be more than a name, a number, a path or a bare address."""

_ADDRESS_PATH = re.compile(r"://[^/\s\"',]*/([^\s\"',]*)")
_PLAIN_PART = re.compile(r"(?:[a-z]{1,16}\d{0,2}|\d{1,4})(?:[._-](?:[a-z]{1,16}\d{0,2}|\d{1,4})){0,4}")
"""A word with few digits at its end, several of them, or a version. Tokens mix letters and digits."""

_SECRET_KEY = re.compile(r"pass|token|secret|auth|cred|key|user", re.IGNORECASE)


def may_hold_token(text: str) -> bool:
    """True if an address in the text may have a token in its path, as package indexes use (`/t/TOKEN/main`)."""
    paths = (found.strip("/").split("/") for found in _ADDRESS_PATH.findall(text))
    return any(part and (part == "t" or not _PLAIN_PART.fullmatch(part)) for path in paths for part in path)


def harmless_settings(home: str, roots: Roots) -> tuple[str, ...]:
    """Those of a home that are open to a task, as they are now."""
    apart = worked_in(roots)
    opened = [f"{home}/{name}" for name in _GIT_PLAIN_FILES]
    opened += [
        path
        for path in (f"{home}/{name}" for name in _GIT_SETTINGS)
        if _stamp(path) is not None and _all_harmless(_git_settings(path, _stamp(path), apart))
    ]
    opened += [path for path in (f"{home}/{name}" for name in _INDEX_SETTINGS) if _plain_index(path, _stamp(path))]
    return tuple(opened)


def lay_git_extract(roots: Roots, scratch: Path, seen_at: str) -> dict[str, str]:
    """Leaves the harmless part of closed settings of git in a command's scratch; the variables that name it.

    `seen_at` is where the command sees its scratch. Nothing when the settings are open. What earlier commands put
    there is no way to anywhere: the file is made anew, and only if nothing has its name.
    """
    files = [(path, _stamp(path)) for path in (f"{roots.home}/{name}" for name in _GIT_SETTINGS)]
    apart = worked_in(roots)
    read = [settings for path, stamp in files if (settings := _git_settings(path, stamp, apart))]
    if all(map(_all_harmless, read)):
        return {}
    kept = (_in_git_words(key, value) for one in read for key, value in one if _is_harmless(key, value))
    place = scratch / EXTRACT
    try:
        place.unlink(missing_ok=True)
        with open(
            os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "w", encoding="utf-8"
        ) as file:
            file.writelines(kept)
    except OSError:  # something else stands there: then git has no name for commits, and says so
        return {}
    return {"GIT_CONFIG_GLOBAL": f"{seen_at}/{EXTRACT}"}


def _in_git_words(key: str, value: str) -> str:
    section, _, name = key.rpartition(".")
    section, _, inner = section.partition(".")
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    head = f'{section} "{inner}"' if inner else section
    return f'[{head}]\n\t{name} = "{quoted}"\n'


def _all_harmless(settings: tuple[tuple[str, str], ...] | None) -> bool:
    return settings is not None and all(_is_harmless(key, value) for key, value in settings)


def _is_harmless(key: str, value: str) -> bool:
    return bool(_HARMLESS_GIT.fullmatch(key)) and "://" not in value and not value.startswith("!")


_Stamp = tuple[int, int, int]


def _stamp(path: str) -> _Stamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=16)
def _git_settings(path: str, stamp: _Stamp | None, apart: tuple[str, ...]) -> tuple[tuple[str, str], ...] | None:
    """Keys and values as git itself reads them; None when it cannot, or is not there."""
    git = find_program("git", apart)
    if git is None or stamp is None or stamp[1] > _MOST_SETTINGS:
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


@lru_cache(maxsize=16)
def _plain_index(path: str, stamp: _Stamp | None) -> bool:
    """Whether a file says where packages come from and holds nothing that could be a credential."""
    if stamp is None or stamp[1] > _MOST_SETTINGS:
        return False
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, ValueError):
        return False
    return all(
        _OPEN_INDEX_LINE.fullmatch(line)
        and not _SECRET_KEY.search(line.partition("=")[0])
        and not may_hold_token(line)
        for line in lines
    )
