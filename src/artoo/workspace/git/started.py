"""Files that git's settings and hooks start: `filter.x.clean = python -m tool` starts tool.py of the project.

A file asks if the value of a setting names it: as a path, as the end of one, as a module, or by a word that could
be its name. What each setting does is not asked; those that are known to name no program are left out. The settings
and hooks are read as the user has them; a change of them asks by itself.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from artoo.contracts.settling import ChangeClass
from artoo.workspace.changes.effect import Effect, Verdict
from artoo.workspace.git.run import ENVIRONMENT, GitFailed

_SECONDS = 20.0
_LONGEST_HOOK = 1 << 18
_NAMES_NO_PROGRAM = re.compile(
    r"user\..*|branch\..*|remote\..*\.(url|pushurl|fetch|push|tagopt|prune)|submodule\..*|commit\.template"
    r"|mailmap\..*|blame\..*|safe\.directory|init\.defaultbranch|maintenance\.repo|extensions\..*|pull\..*|push\..*"
    r"|color\..*|column\..*|core\.(worktree|bare|filemode|repositoryformatversion|logallrefupdates|ignorecase"
    r"|symlinks|autocrlf|eol|excludesfile|attributesfile)"
)
_BETWEEN_WORDS = re.compile(r"[\s\"'`$(){}\[\];&|<>=,:!*?\\]+")
_STARTED = Verdict(ChangeClass.PERSISTENCE, "a setting or a hook of git names it, and git may start it")


def judge_started(effects: Sequence[Effect], home: Path, program: str) -> dict[bytes, Verdict]:
    """Return the files among the effects that settings or hooks of their repositories name. Blocking.

    Where git cannot say what its settings are, every file of the repository is returned.
    """
    says: dict[bytes, Verdict] = {}
    words: dict[bytes, frozenset[str] | None] = {}
    tops: dict[bytes, tuple[bytes, ...]] = {}
    for one in effects:
        if one.after is None or one.after.is_directory or one.in_place:
            continue
        directory = one.path.rpartition(b"/")[0]
        if directory not in tops:
            tops[directory] = tuple(_worktrees(directory))
        for top in tops[directory]:
            if top not in words:
                words[top] = _words(top, home, program)
            if not one.path.startswith(top + b"/.git/") and _is_named(one.path[len(top) + 1 :], words[top]):
                says[one.path] = _STARTED
    return says


def _worktrees(directory: bytes) -> Iterator[bytes]:
    """Return the directories of the user's on the way down that are worktrees."""
    names = directory.split(b"/")
    above = (b"/".join(names[:length]) for length in range(2, len(names) + 1))
    return (one for one in above if os.path.lexists(one + b"/.git"))


def _words(top: bytes, home: Path, program: str) -> frozenset[str] | None:
    """Return the words of all settings and hooks that may start something; None if they cannot be read."""
    found: set[str] = set()
    hooks = os.path.join(top, b".git/hooks")
    try:
        for key, value in _settings(top, home, program):
            if key == "core.hookspath":
                hooks = os.path.join(top, os.fsencode(os.path.expanduser(value)))
                found.add(f"{os.fsdecode(os.path.relpath(hooks, top))}/")
            subcommand = key.startswith("alias.") and not value.startswith("!")
            if not _NAMES_NO_PROGRAM.fullmatch(key) and not subcommand:
                found.update(_BETWEEN_WORDS.split(value))
        for hook in _texts(hooks):
            found.update(word for word in _BETWEEN_WORDS.split(hook) if "/" in word or "." in word)
            found.update(re.findall(r"-m\s+([\w.]+)", hook))
    except (GitFailed, OSError):
        return None
    return frozenset(found)


def _is_named(relative: bytes, words: frozenset[str] | None) -> bool:
    if words is None:
        return True
    path = os.fsdecode(relative)
    parts = re.sub(r"(/__(init|main)__)?\.pyc?$", "", path).split("/")
    ends = {"/".join(parts[start:]) for start in range(len(parts))}
    name = os.path.basename(path)
    ends |= {os.path.splitext(end)[0] for end in ends}  # `node scripts/lint` starts scripts/lint.js
    names = {name, *ends, *(end.replace("/", ".") for end in ends)}
    if not words.isdisjoint(names):
        return True
    # A pattern was cut at its `*`: `hooks.d/h*` and `tools/` name everything that begins so.
    beginnings = tuple(word.removeprefix("./") for word in words if "/" in word.removeprefix("./"))
    return path.startswith(beginnings) or any(word.endswith(f"/{name}") for word in words)


def _settings(top: bytes, home: Path, program: str) -> Iterator[tuple[str, str]]:
    """Return key and value of every setting that the user's git knows there. Listing them starts nothing."""
    own = {name: value for name, value in os.environ.items() if name.startswith(("GIT_CONFIG_", "XDG_CONFIG_HOME"))}
    clean = {key: value for key, value in ENVIRONMENT.items() if not key.startswith("GIT_CONFIG_")}
    try:
        done = subprocess.run(
            [program, "-c", "safe.directory=*", "config", "--list", "-z", "--includes"],
            capture_output=True,
            timeout=_SECONDS,
            env={**clean, **own, "HOME": str(home)},
            cwd=top,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise GitFailed(str(error)) from error
    for setting in os.fsdecode(done.stdout).split("\0"):
        key, _, value = setting.partition("\n")
        yield key, value


def _texts(directory: bytes) -> Iterator[str]:
    """Return the hooks in a directory, as text."""
    for name in os.listdir(directory) if os.path.isdir(directory) else ():
        path = os.path.join(directory, name)
        if not name.endswith(b".sample") and os.path.isfile(path):
            with open(path, "rb") as file:
                content = file.read(_LONGEST_HOOK + 1)
            if len(content) > _LONGEST_HOOK:
                raise GitFailed("a hook is too long to be read")
            yield content.decode("utf-8", "replace")
