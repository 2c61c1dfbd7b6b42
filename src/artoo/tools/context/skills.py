"""Parse skills (folders with SKILL.md), with limits on number, name, description, text and files.

<folder>/<name>/SKILL.md   front matter (YAML: name, description), then instructions
                …          scripts and references, which the instructions name
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.errors import ConfigurationError
from artoo.ports.workspace import Files
from artoo.settings.yaml_file import parse
from artoo.tools.files.paths import is_within
from artoo.tools.files.text_files import NotPlainFile, read_limited

SKILL_FILE = "SKILL.md"
MOST_SKILLS = 32
"""Maximum number of skills that are read from one folder. If there are more, a problem is reported."""
MOST_FILES, LARGEST, DEEPEST = 200, 4 << 20, 6
"""Limits of a skill: the number of its files, their total size in bytes, and the number of directory levels."""
MOST_PATHS = 1_000
"""Maximum number of paths in a skill. Its directories and links count too."""
LONGEST_TEXT = 128 * 1024
"""Maximum size of a SKILL.md, in bytes."""
LONGEST_DESCRIPTION = 1_024
_LONGEST_HEAD = 16 * 1024
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_NAME = 64
_FENCE = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SkillFile:
    """One file of a skill, by its path in the folder. `runs`: true if the file is executable."""

    path: str
    data: bytes
    runs: bool = False


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill, as it was at the time of reading. `digest` covers all its files. `foreign`: true if it is not the
    user's own skill."""

    name: str
    description: str
    body: str
    folder: Path
    digest: str
    files: tuple[SkillFile, ...]
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class FoundSkills:
    """The valid skills in some folders, and a sentence about each entry that is not a valid skill."""

    skills: tuple[Skill, ...] = ()
    problems: tuple[str, ...] = ()


def skills_in(files: Files, folder: Path, within: Path, *, foreign: bool) -> FoundSkills:
    """Read the skills in one folder; return them by name. Blocking. Never raises."""
    # An entry that links to a path outside of `within` is reported as a problem.
    found, problems = list[Skill](), list[str]()
    try:
        places = _places(files, folder)
    except OSError as error:
        return FoundSkills((), (f"{folder}: it cannot be read: {error.strerror}",))
    if len(places) > MOST_SKILLS:
        problems.append(f"{folder}: it has more than {MOST_SKILLS} skills; the others are not looked at")
    for place in places[:MOST_SKILLS]:
        try:
            found.append(read_skill(files, _inside(files.resolve(place), within), foreign=foreign))
        except (ConfigurationError, OSError) as error:
            problems.append(f"{place}: {error}")
    return FoundSkills(tuple(found), tuple(problems))


def read_skill(files: Files, folder: Path, *, foreign: bool = False) -> Skill:
    """Read the skill in a resolved folder. Raises ConfigurationError for an invalid skill, and OSError."""
    members = tuple(_members(files, folder))
    text = next((one.data for one in members if one.path == SKILL_FILE), None)
    if text is None:
        raise ConfigurationError(f"there is no plain file {SKILL_FILE}")
    if len(text) > LONGEST_TEXT:
        raise ConfigurationError(f"{SKILL_FILE} is longer than {LONGEST_TEXT:,} bytes")
    try:
        head, body = _parts(text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{SKILL_FILE} is no UTF-8 text") from error
    name, description = _named(head, folder / SKILL_FILE)
    return Skill(name, description, body, folder, _digest(members), members, foreign)


def _inside(real: Path, within: Path) -> Path:
    if not is_within(real, within):
        raise ConfigurationError(f"it leads out of {within}")
    return real


def _places(files: Files, folder: Path) -> list[Path]:
    """Return the entries that may be skills. Return nothing if the folder does not exist. Raises OSError."""
    try:
        names = files.names(files.resolve(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [folder / name for name in names if not name.startswith(".")]


def _members(files: Files, folder: Path) -> Iterator[SkillFile]:
    """Yield every file, sorted by path."""
    # Links are not followed, because the files behind them are not part of the skill.
    left, count = LARGEST, 0
    for seen, (path, mode) in enumerate(_walk(files, folder, 0)):
        if seen == MOST_PATHS:
            raise ConfigurationError(f"it has more than {MOST_PATHS:,} files, directories and links")
        if stat.S_ISLNK(mode) or stat.S_ISDIR(mode):
            continue
        try:
            data, size = read_limited(files, path, left + 1)
        except NotPlainFile as error:
            raise ConfigurationError(f"{path.name} is no plain file: {error}") from error
        left, count = left - size, count + 1
        if left < 0 or count > MOST_FILES:
            raise ConfigurationError(f"it has more than {MOST_FILES} files or {LARGEST >> 20} MiB")
        yield SkillFile(str(path.relative_to(folder)), data, bool(mode & stat.S_IXUSR))


def _walk(files: Files, directory: Path, depth: int) -> Iterator[tuple[Path, int]]:
    """Yield every path below a resolved directory, with its mode."""
    if depth > DEEPEST:
        raise ConfigurationError(f"it is deeper than {DEEPEST} directories")
    for name in files.names(directory):
        path = directory / name
        found = files.stat(path)
        if found is None:
            continue
        yield path, found.mode
        if stat.S_ISDIR(found.mode):
            yield from _walk(files, path, depth + 1)


def _parts(text: str) -> tuple[str, str]:
    """Split a text into front matter and body."""
    match = _FENCE.match(text)
    if match is None or len(match.group(1)) > _LONGEST_HEAD:
        raise ConfigurationError(f"{SKILL_FILE} does not begin with front matter between two lines `---`")
    return match.group(1), text[match.end() :].strip()


def _named(head: str, path: Path) -> tuple[str, str]:
    try:
        # A blank line replaces the mark before the front matter, so that the parser's line numbers match the file.
        fields, _ = parse(f"\n{head}", path)
    except RecursionError as error:
        raise ConfigurationError(f"the front matter of {SKILL_FILE} is nested too deeply") from error
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise ConfigurationError(
            f"`name` must be up to {_LONGEST_NAME} small letters, digits and single hyphens, as in: pdf-forms"
        )
    if not isinstance(description, str) or not description.strip():
        raise ConfigurationError("`description` must say what the skill is for")
    return name, " ".join(description.split())[:LONGEST_DESCRIPTION]


def _digest(members: tuple[SkillFile, ...]) -> str:
    """Return the sha256 (hex) over every name, mode and byte."""
    whole = hashlib.sha256()
    for one in members:
        for part in (os.fsencode(one.path), b"x" if one.runs else b"-", one.data):
            whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()
