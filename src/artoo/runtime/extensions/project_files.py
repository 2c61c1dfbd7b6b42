"""Read a project's hooks and slash commands, which need approval of exactly their content.

PROJECT/.artoo/hooks.yaml, PROJECT/.artoo/hooks/…    hooks, and the scripts that they call
PROJECT/.artoo/commands/NAME.md                      slash commands
<home>/commands/NAME.md                              the user's own slash commands, which need no approval
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
from artoo.runtime.config.extensions import Hooks
from artoo.settings.places import Places
from artoo.settings.problems import problems_of, report
from artoo.settings.yaml_file import parse

HOOKS_FILE, HOOKS_FOLDER, COMMANDS_FOLDER = ".artoo/hooks.yaml", ".artoo/hooks", ".artoo/commands"
HOME_COMMANDS = "commands"
MOST_FILES, LARGEST = 200, 1 << 20
"""The most files, and the most bytes of a file, that are read in one folder."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A file of a project with its scripts, as they were read. `digest` covers every byte of the file and of the
    scripts."""

    name: str
    folder: Path
    digest: str
    text: str


def hooks_file(project: Path) -> ProjectFile | None:
    """Read the project's hooks and the scripts next to them. Returns None if it has no hooks. Blocking.

    Raises ConfigurationError if a file cannot be read.
    """
    path = project / HOOKS_FILE
    if not os.path.lexists(path):
        return None
    parts = [(HOOKS_FILE, _read(path, project))]
    parts += [(str(each.relative_to(project)), _read(each, project)) for each in _below(project / HOOKS_FOLDER)]
    return ProjectFile("hooks", path, _digest(parts), parts[0][1].decode("utf-8", "replace"))


def hooks_in(file: ProjectFile) -> Hooks:
    """Read the hooks of a file. Raises ConfigurationError that names each mistake with its line."""
    tree, places = parse(file.text, file.folder) if file.text.strip() else ({}, Places(file.folder))
    if problems := [*places.problems, *problems_of(tree, places, Hooks)]:
        raise ConfigurationError(report(problems))
    return Hooks.model_validate(tree)


def command_files(folder: Path, within: Path) -> tuple[ProjectFile, ...]:
    """Read the slash commands of a folder, by name. Blocking. Raises ConfigurationError if a file
    cannot be read.
    """
    found: list[ProjectFile] = []
    for path in _below(folder, depth=1):
        if path.suffix == ".md" and _NAME.fullmatch(path.stem):
            data = _read(path, within)
            found.append(
                ProjectFile(path.stem, path, _digest([(path.name, data)]), data.decode("utf-8", "replace"))
            )
    return tuple(found)


def _below(folder: Path, depth: int = 4) -> Iterator[Path]:
    """Yield the files below a folder, sorted. Links to folders are not followed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be read: {error.strerror}") from error
    if len(entries) > MOST_FILES:
        raise ConfigurationError(f"{folder} holds more than {MOST_FILES} files")
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if depth > 1:
                yield from _below(Path(entry.path), depth - 1)
        else:
            yield Path(entry.path)


def _read(path: Path, within: Path) -> bytes:
    """Read a regular file that is inside `within` after all links are followed. Raises ConfigurationError."""
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(within.resolve()) or not stat.S_ISREG(real.stat().st_mode):
            raise ConfigurationError(f"{path} is no plain file of {within}")
        with real.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > LARGEST:
        raise ConfigurationError(f"{path} is larger than {LARGEST >> 10} KiB")
    return data


def _digest(parts: list[tuple[str, bytes]]) -> str:
    """Return the SHA-256 (hex) over the names and contents. Each is preceded by its length."""
    whole = hashlib.sha256()
    for name, data in parts:
        for part in (os.fsencode(name), data):
            whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()
