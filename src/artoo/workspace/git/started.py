"""Files that git's settings and hooks start: `filter.x.clean = python -m tool` starts tool.py of the project.

What which setting does is not asked. A file asks if a value names it: as a path, as the end of one, or as a module or
a word that could be its name. Settings that are known to name no program are left out. Read are the settings as the
user has them; a change of them asks by itself.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from artoo.contracts.settling import ChangeClass
from artoo.workspace.changes.effect import Effect
from artoo.workspace.changes.verdict import Verdict
from artoo.workspace.git.run import ENVIRONMENT

_SECONDS = 20.0
_LONGEST_HOOK = 1 << 18
_NAMES_NO_PROGRAM = re.compile(
    r"user\..*|branch\..*|remote\..*\.(url|pushurl|fetch|push|tagopt|prune)|submodule\..*|commit\.template"
    r"|mailmap\..*|blame\..*|safe\.directory|init\.defaultbranch|maintenance\.repo|extensions\..*|pull\..*|push\..*"
    r"|color\..*|column\..*|core\.(worktree|bare|filemode|repositoryformatversion|logallrefupdates|ignorecase"
    r"|symlinks|autocrlf|eol|excludesfile|attributesfile)|alias\.[^!]*"
)
_BETWEEN_WORDS = re.compile(r"[\s\"'`$(){}\[\];&|<>=,:!*?\\]+")
_STARTED = Verdict(ChangeClass.PERSISTENCE, "a setting or a hook of git names it, and git may start it")


def judge_started(effects: Sequence[Effect], home: Path, program: str) -> dict[bytes, Verdict]:
    """Return the files among the effects that settings or hooks of their repositories name. Blocking."""
    files = [one for one in effects if one.after is not None and not one.after.is_directory and not one.in_place]
    says: dict[bytes, Verdict] = {}
    for top, inside in _by_worktree(files).items():
        words = frozenset(_words(top, home, program))
        if words:
            says |= {one.path: _STARTED for one in inside if _is_named(one.path, top, words)}
    return says


def _by_worktree(effects: Iterable[Effect]) -> dict[bytes, list[Effect]]:
    """Return the effects by each directory above them that the user has as a worktree."""
    found: dict[bytes, list[Effect]] = {}
    above: dict[bytes, tuple[bytes, ...]] = {}
    for effect in effects:
        directory = os.path.dirname(effect.path)
        if directory not in above:
            names = directory.split(b"/")
            places = (b"/".join(names[:length]) for length in range(2, len(names) + 1))
            above[directory] = tuple(one for one in places if os.path.lexists(one + b"/.git"))
        for top in above[directory]:
            if not effect.path.startswith(top + b"/.git/"):
                found.setdefault(top, []).append(effect)
    return found


def _words(top: bytes, home: Path, program: str) -> Iterator[str]:
    """Return the words of all settings and hooks that may start something, paths in them with their last part."""
    for key, value in _settings(top, home, program):
        if key.startswith("alias.") and not value.startswith("!"):
            continue  # a subcommand of git
        if not _NAMES_NO_PROGRAM.fullmatch(key) or key.startswith("alias."):
            yield from _BETWEEN_WORDS.split(value)
    for hook in _hooks(top, home, program):
        yield from (word for word in _BETWEEN_WORDS.split(hook) if "/" in word or "." in word)
        yield from re.findall(r"-m\s+([\w.]+)", hook)


def _is_named(path: bytes, top: bytes, words: frozenset[str]) -> bool:
    relative = os.fsdecode(path[len(top) + 1 :])
    name = os.path.basename(relative)
    module = re.sub(r"(/__(init|main)__)?\.pyc?$", "", relative)
    parts = module.split("/")
    ends = {"/".join(parts[start:]) for start in range(len(parts))}
    candidates = {
        name,
        os.path.splitext(name)[0],
        os.fsdecode(path),
        *ends,
        *(end.replace("/", ".") for end in ends),
    }
    candidates |= {relative, f"./{relative}", *(f"{one}/{relative}" for one in ("$GIT_WORK_TREE", "$PWD"))}
    directories = {"/".join(relative.split("/")[:length]) for length in range(1, relative.count("/") + 1)}
    return any(
        word in candidates or (word.rstrip("/") in directories and "/" in word) or word.endswith(f"/{name}")
        for word in words
        if word
    )


def _settings(top: bytes, home: Path, program: str) -> list[tuple[str, str]]:
    """Return key and value of every setting that the user's git knows there. Listing them starts nothing."""
    own = {name: value for name, value in os.environ.items() if name.startswith(("GIT_CONFIG_", "XDG_CONFIG_HOME"))}
    environment = {key: value for key, value in ENVIRONMENT.items() if not key.startswith("GIT_CONFIG_")}
    done = subprocess.run(
        [program, "-c", "safe.directory=*", "config", "--list", "-z", "--includes"],
        capture_output=True,
        timeout=_SECONDS,
        env=environment | own | {"HOME": str(home)},
        cwd=top,
        check=False,
    )
    pairs = (one.partition("\n") for one in os.fsdecode(done.stdout).split("\0") if one)
    return [(key, value) for key, _, value in pairs]


def _hooks(top: bytes, home: Path, program: str) -> Iterator[str]:
    """Return the hooks of the user, wherever they are."""
    told = [value for key, value in _settings(top, home, program) if key == "core.hookspath"]
    place = os.path.join(top, os.fsencode(os.path.expanduser(told[-1])) if told else b".git/hooks")
    try:
        names = [name for name in os.listdir(place) if not name.endswith(b".sample")]
    except OSError:
        return
    for name in names:
        try:
            with open(os.path.join(place, name), "rb") as file:
                yield file.read(_LONGEST_HOOK).decode("utf-8", "replace")
        except OSError:
            continue
