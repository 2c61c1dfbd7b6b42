"""Settings of git that commands may see: an extract that holds only keys which are known to be harmless.

A name for commits is needed. A credential helper, a header or a token in an address is not, so the files themselves
stay closed. So do the settings of package indexes, whose addresses may hold tokens: a policy line can open them.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from artoo.ports.sandbox import Roots
from artoo.sandbox.reading.programs import find_program, search_path, worked_in

_SETTINGS = (".config/git/config", ".gitconfig")
"""In the order in which git reads them: a later value counts."""
OPEN_FILES = (
    ".config/git/ignore",
    ".config/git/attributes",
    ".gitignore",
    ".gitignore_global",
    ".gitattributes",
)
"""Files of a home that git reads, and that hold only patterns."""
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
"""Keys that say how git looks and behaves. Any other key, a section's own name included, may hold an address."""


def lay_git_extract(roots: Roots, scratch: Path, seen_at: str) -> dict[str, str]:
    """Write the harmless part of git's settings into the scratch directory, and return the variables that name it.

    `seen_at` is where commands see the scratch directory. What earlier commands put there leads nowhere, because
    the file is made anew, and only if nothing has its name.
    """
    program = find_program("git", worked_in(roots))
    if program is None:
        return {}
    kept = [line for name in _SETTINGS for line in _harmless_part(program, roots, roots.home / name)]
    place = scratch / _EXTRACT
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        place.unlink(missing_ok=True)
        if not kept:
            return {}
        with open(os.open(place, flags, 0o644), "w", encoding="utf-8") as file:
            file.writelines(kept)
    except OSError:  # something else stands there: then git has no name for commits, and says so
        return {}
    return {"GIT_CONFIG_GLOBAL": f"{seen_at}/{_EXTRACT}"}


def _harmless_part(git: str, roots: Roots, path: Path) -> Iterator[str]:
    """Yield settings as git itself reads them; nothing where it cannot."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return
        done = subprocess.run(
            (git, "config", "--file", path, "--no-includes", "--null", "--list"),
            capture_output=True,
            timeout=_SECONDS,
            check=True,
            env={"PATH": search_path(worked_in(roots))},
        )
    except (OSError, subprocess.SubprocessError):
        return
    for setting in done.stdout.decode("utf-8", "replace").split("\0"):
        key, _, value = setting.partition("\n")
        if _HARMLESS.fullmatch(key) and "://" not in value and not value.startswith("!"):
            yield _in_git_words(key, value)


def _in_git_words(key: str, value: str) -> str:
    section, _, name = key.rpartition(".")
    section, _, inner = section.partition(".")
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    head = f'{section} "{inner}"' if inner else section
    return f'[{head}]\n\t{name} = "{quoted}"\n'
