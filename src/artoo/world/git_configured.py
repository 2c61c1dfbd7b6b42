"""Files that the settings of git name: it starts them, reads settings from them, or looks for hooks in them.

Which setting does what is not asked: every value that is a path, or has one among its words, is one, but for the
settings that are known to name no such thing, and for directories that an alias only gives to git. So is every file
of settings, wherever the person keeps it, and what links among a repository's hooks and settings lead to. Looked at
are the settings as they are; a change of them is asked about itself.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from artoo.world.git_layout import Part, part_of, read_file
from artoo.world.led_to import leads_to, links_in
from artoo.world.path_set import upwards
from artoo.world.programs import find_program, search_path
from artoo.world.scan import Effect
from artoo.world.verdict import PROGRAMS, Verdict

_NAMES_NO_FILE = re.compile(
    r"user\..*|branch\..*|remote\..*\.(url|pushurl|fetch|push|tagopt|prune)|submodule\..*\.(url|path|active|branch)"
    r"|commit\.template|format\.signaturefile|mailmap\.(file|blob)|blame\.ignorerevsfile"
    r"|safe\.directory|init\.defaultbranch|maintenance\.repo|extensions\..*|pull\..*|push\..*|color\..*|column\..*"
    r"|core\.(worktree|bare|filemode|repositoryformatversion|logallrefupdates|ignorecase|symlinks|autocrlf|eol)"
)
_PUNCTUATION = re.compile(r"[\s\"'`$(){}\[\];&|<>=,:!*?\\]+")
"""What ends a word for a shell, or stands between paths in values of other kinds."""

_OPTION = re.compile(r"-[A-Za-z](.+)")
_ELSEWHERE = re.compile(r"[$`]|\bcd\b")
"""With these a command says only when it runs where its paths begin."""

_OPERATOR = frozenset("();<>|&")
"""Behind these a shell begins with another command, or what it reads or writes."""
_MORE = re.compile(r"[\s=]")

_UPWARDS = re.compile(r"(\.{0,2}/)+")
_SECONDS = 20.0
_MOST_WORKTREES = 50


def judge_configured(effects: Sequence[Effect], home: Path, apart: Sequence[str] = ()) -> dict[bytes, Verdict]:
    """By path: what settings of git name. `home`: where the person's own settings are; `apart`: where git itself is
    not taken from. Blocking."""
    changed = [one for one in effects if one.after is not None and not one.in_place]
    paths = [os.fsdecode(one.path) for one in changed]
    files = {path for one, path in zip(changed, paths, strict=True) if one.after and not one.after.is_directory}
    named: set[str] = set()
    for worktree in _worktrees(changed):
        named.update(_named(worktree, home, files, apart), _linked(worktree))
    says: dict[bytes, Verdict] = {}
    for one, path in zip(changed, paths, strict=True) if named else ():
        directory = one.after is not None and one.after.is_directory
        if path in named or (not directory and any(above in named for above in upwards(path))):
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


def _named(worktree: Path, home: Path, changed: Collection[str], apart: Sequence[str]) -> Iterator[str]:
    """The places, in and out of the worktree, that values of its settings may name, and those of settings.

    `changed`: the files that matter where a value does not say where a path begins, or that it is one.
    """
    for place in (*_variables().values(), f"{os.environ.get('XDG_CONFIG_HOME') or home / '.config'}/git"):
        yield from _outside_of(worktree, worktree / place)
    for origin, key, value in _settings(worktree, home, apart):
        file = origin.removeprefix("file:")
        if file != origin:
            yield from _outside_of(worktree, worktree / file)
        if _NAMES_NO_FILE.fullmatch(key):
            continue
        bases = (worktree, worktree / ".git", worktree / os.path.dirname(file), home)
        words, pieces = _words(value), _pieces(value)
        arguments = _arguments_of_git(key, value)
        paths = {piece for piece in pieces if "/" in piece or "." in piece}
        for base in bases:
            for word in words | paths:
                text = str(home) + word[1:] if word.startswith("~/") else word
                places = _outside_of(worktree, base / text)
                yield from places if word not in arguments else (one for one in places if one in changed)
            yield from (place for piece in pieces if (place := os.path.join(base, piece)) in changed)
        if _ELSEWHERE.search(value):
            ends = {_UPWARDS.sub("", piece, count=1) for piece in paths} - {"", ".", ".."}
            endings = tuple(f"/{end}" for end in ends)
            yield from (path for path in changed if path.startswith(f"{worktree}/") and path.endswith(endings))


def _outside_of(worktree: Path, place: Path) -> Iterator[str]:
    """A place as it is called and as it is, unless it holds the worktree: then it says nothing of what is there."""
    for one in (os.path.normpath(place), os.path.realpath(place)):
        if not worktree.is_relative_to(one):
            yield one


def _linked(worktree: Path) -> Iterator[str]:
    """What links among the hooks and settings of a worktree's repository lead to."""
    for place in _repositories(worktree):
        for link in links_in((place, f"{place}/hooks", f"{place}/info")):
            if part_of(os.path.relpath(link, place)) is Part.PROGRAMS:
                yield from leads_to(link)


def _repositories(worktree: Path) -> Iterator[str]:
    """The directory of git for a worktree, and the one that it shares with others."""
    place = os.path.join(worktree, ".git")
    if os.path.isfile(place):
        told = os.fsdecode(read_file(Path(place), 4096) or b"").removeprefix("gitdir:").strip()
        place = os.path.normpath(os.path.join(worktree, told))
    yield place
    shared = read_file(Path(place, "commondir"), 4096)
    if shared is not None:
        yield os.path.normpath(os.path.join(place, os.fsdecode(shared).strip()))


def _words(value: str) -> set[str]:
    """A value as a path, and as a command."""
    command = value.removeprefix("!")
    try:
        words = shlex.split(command)
    except ValueError:  # no command that a shell takes
        words = command.split()
    return _names((value, *words))


def _arguments_of_git(key: str, value: str) -> set[str]:
    """Words of an alias that only git is given: of a directory among them it starts nothing, of a file it may.

    A word that holds more than a path (an option's value, a command in quotes) is none, nor is what follows `-C`.
    """
    if not key.startswith("alias.") or _ELSEWHERE.search(value):
        return set()
    command = value.removeprefix("!")
    lexer = shlex.shlex(command if command != value else f"git {value}", posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    given: set[str] = set()
    others: set[str] = set()
    started, last = "", ""
    try:
        for word in lexer:
            if not _OPERATOR.isdisjoint(word):
                started = ""
            elif not started and word != "{":
                started = word
                others.add(word)
            else:
                plain = started == "git" and last != "-C" and not word.startswith("-") and not _MORE.search(word)
                (given if plain else others).add(word)
            last = word
    except ValueError:  # no command that a shell takes
        return set()
    return given - others


def _pieces(value: str) -> set[str]:
    """What stands in a value between a shell's punctuation, and behind the letters of options."""
    pieces = _PUNCTUATION.split(value)
    return _names((*pieces, *(found.group(1) for piece in pieces if (found := _OPTION.fullmatch(piece)))))


def _names(words: Iterable[str]) -> set[str]:
    return {word for word in words if word and "\0" not in word and len(word) < 4096}


def _variables() -> dict[str, str]:
    """The variables that say where the person's settings are."""
    return {name: os.environ[name] for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM") if os.environ.get(name)}


def _settings(worktree: Path, home: Path, apart: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Origin, key and value of every setting that git knows there. Listing them starts nothing."""
    git = find_program("git", apart)
    if git is None:  # then nothing that it would start is started
        return
    command = [git, "-c", "safe.directory=*", "config", "--list", "-z", "--show-origin", "--includes"]
    kept = {name: value for name, value in os.environ.items() if name.startswith("GIT_CONFIG_")}
    kept |= {name: os.environ[name] for name in ("XDG_CONFIG_HOME",) if name in os.environ}
    environment = {"PATH": search_path(apart), **kept, "HOME": str(home), "LC_ALL": "C"}
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
