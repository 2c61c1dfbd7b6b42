"""Files that the settings of git name: it starts them, reads settings from them, or looks for hooks in them.

Which setting does what is not asked: every value that is a path, or has one among its words, is one, but for the
settings that are known to name no such thing. Looked at are the settings as they are; a change of settings is asked
about itself.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from artoo.world.path_set import upwards
from artoo.world.scan import Effect
from artoo.world.verdict import PROGRAMS, Verdict

_NAMES_NO_FILE = re.compile(
    r"user\..*|branch\..*|remote\..*\.(url|pushurl|fetch|push|tagopt|prune)|submodule\..*\.(url|path|active|branch)"
    r"|safe\.directory|init\.defaultbranch|maintenance\.repo|extensions\..*|pull\..*|push\..*|color\..*|column\..*"
    r"|core\.(worktree|bare|filemode|repositoryformatversion|logallrefupdates|ignorecase|symlinks|autocrlf|eol)"
)
_SECONDS = 20.0
_MOST_WORKTREES = 50


def judge_configured(effects: Sequence[Effect], home: Path) -> dict[bytes, Verdict]:
    """By path: what settings of git name. `home`: where the person's own settings are. Blocking."""
    changed = [one for one in effects if one.after is not None and not one.in_place]
    named: set[str] = set()
    for worktree in _worktrees(changed):
        named.update(_named(worktree, home))
    says: dict[bytes, Verdict] = {}
    for one in changed if named else ():
        path = os.fsdecode(one.path)
        ordinary = one.after is not None and not (one.after.is_directory and path not in named)
        if ordinary and any(path == name or path.startswith(f"{name}/") for name in named):
            says[one.path] = PROGRAMS
    return says


def _worktrees(effects: Iterable[Effect]) -> list[Path]:
    """The directories above the effects that are repositories' worktrees, or bare ones."""
    found: dict[Path, None] = {}
    seen: set[str] = set()
    for directory in dict.fromkeys(effect.path.rpartition(b"/")[0] for effect in effects):
        for above in upwards(os.fsdecode(directory)):
            if above in seen:
                break
            seen.add(above)
            if os.path.lexists(f"{above}/.git") and len(found) < _MOST_WORKTREES:
                found[Path(above)] = None
    return list(found)


def _named(worktree: Path, home: Path) -> Iterator[str]:
    """The places, in and out of the worktree, that values of its settings may name."""
    for origin, key, value in _settings(worktree, home):
        if _NAMES_NO_FILE.fullmatch(key):
            continue
        file = origin.removeprefix("file:")
        bases = (worktree, worktree / ".git", worktree / os.path.dirname(file), home)
        for word in _words(value):
            text = str(home) + word[1:] if word.startswith("~/") else word
            for base in bases:
                for place in (os.path.normpath(base / text), os.path.realpath(base / text)):
                    if not worktree.is_relative_to(place):
                        yield place


def _words(value: str) -> set[str]:
    """A value as a path, and as a command."""
    command = value.removeprefix("!")
    try:
        words = shlex.split(command)
    except ValueError:  # no command that a shell takes
        words = command.split()
    return {word for word in (value, *words) if word and "\0" not in word and len(word) < 4096}


def _settings(worktree: Path, home: Path) -> Iterator[tuple[str, str, str]]:
    """Origin, key and value of every setting that git knows there. Listing them starts nothing."""
    git = shutil.which("git")
    if git is None:  # then nothing that it would start is started
        return
    command = [git, "-c", "safe.directory=*", "config", "--list", "-z", "--show-origin", "--includes"]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home), "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_SECONDS, env=environment, cwd=worktree, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    parts = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    for origin, setting in zip(parts[0::2], parts[1::2], strict=False):
        key, _, value = setting.partition("\n")
        yield origin, key, value
