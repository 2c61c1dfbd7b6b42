"""A breadth-first directory walk with limits on entries and time, and with .gitignore rules.

Links are not followed.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from artoo.contracts.errors import ToolError
from artoo.ports.workspace import Files
from artoo.tools.files.text_files import NotPlainFile, read_limited
from artoo.workspace.files.rooted import real_files

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE = ".gitignore"
_IGNORE_FILE_LIMIT = 64 * 1024
MOST_IGNORED = 100
"""Maximum number of ignored paths that a walk records."""


class EntryKind(Enum):
    """The kind of a directory entry. A link is a kind of its own, whatever its target is."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"

    @classmethod
    def of(cls, mode: int) -> EntryKind:
        """Return the kind for a mode from `stat`."""
        kinds = ((stat.S_ISREG, cls.FILE), (stat.S_ISDIR, cls.DIRECTORY), (stat.S_ISLNK, cls.LINK))
        return next((kind for is_it, kind in kinds if is_it(mode)), cls.OTHER)


@dataclass(frozen=True, slots=True)
class WalkEntry:
    """One entry of a directory. `path` is relative to the root of the walk, with `/`. Undecodable bytes are
    surrogates. `size` is in bytes.

    `place` is the resolved absolute path. It is None if the entry is not to be read.
    """

    path: str
    kind: EntryKind
    size: int | None = None
    target: str | None = None
    place: Path | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def depth(self) -> int:
        """Return the number of directories between the root of the walk and the entry."""
        return self.path.count("/")


@dataclass(frozen=True, slots=True)
class WalkLimits:
    """The limits of one walk: number of entries, and seconds."""

    entries: int = 200_000
    seconds: float = 10.0


@dataclass(slots=True)
class Walk:
    """A walk through a directory, and its findings. A walk can be iterated only once. Afterwards `complete` is
    false if a limit stopped the walk.

    `hidden`: whether entries whose name starts with a dot are left out, visited after all others, or treated like
    others. `ignored` has the paths that ignore files exclude, those with few directories first. It does not contain
    `.git`, or paths below an ignored directory.
    """

    root: Path
    limits: WalkLimits = WalkLimits()
    files: Files = field(default_factory=real_files)
    hidden: Literal["skip", "last", "keep"] = "keep"
    honour_ignore: bool = False
    complete: bool = True
    seen: int = 0
    unreadable: list[str] = field(default_factory=list[str])
    empty: list[str] = field(default_factory=list[str])
    hidden_skipped: list[str] = field(default_factory=list[str])
    ignored: list[str] = field(default_factory=list[str])

    def __iter__(self) -> Iterator[WalkEntry]:
        """Yield the entries ordered by depth, then by name. Raises ToolError for an unreadable root."""
        deadline = time.monotonic() + self.limits.seconds
        now: deque[tuple[str, _Ignores]] = deque([("", ())])
        later: deque[tuple[str, _Ignores]] = deque()
        root = self._root()
        while now or later:
            folder, ignores = now.popleft() if now else later.popleft()
            found = self._scan(root, folder)
            if not found and folder not in self.unreadable[-1:]:
                self.empty.append(folder)
            if self.honour_ignore:
                ignores = _with_ignore_file(self.files, folder, found, ignores)
            for entry in found:
                if self.seen >= self.limits.entries or time.monotonic() > deadline:
                    self.complete = False
                    return
                if self._left_out(entry, ignores):
                    continue
                self.seen += 1
                yield entry
                if entry.kind is EntryKind.DIRECTORY:
                    last = self.hidden == "last" and entry.name.startswith(".")
                    (later if last else now).append((entry.path, ignores))

    def _root(self) -> Path:
        try:
            return self.files.resolve(self.root)
        except OSError as error:
            raise ToolError(f"cannot list {str(self.root)!r}: {error.strerror}") from error

    def _scan(self, root: Path, folder: str) -> list[WalkEntry]:
        try:
            names = self.files.names(root / folder)
        except OSError as error:
            if not folder:
                raise ToolError(f"cannot list {str(self.root)!r}: {error.strerror}") from error
            self.unreadable.append(folder)
            return []
        entries = (self._entry(root, folder, os.fsdecode(name)) for name in names)
        return sorted((entry for entry in entries if entry is not None), key=lambda entry: entry.name)

    def _entry(self, root: Path, folder: str, name: str) -> WalkEntry | None:
        path = f"{folder}/{name}" if folder else name
        place = root / path
        found = self.files.stat(place)
        # `stat` returns None if the entry was removed after its directory was read.
        if found is None:
            return None
        kind = EntryKind.of(found.mode)
        target = _target(self.files, place) if kind is EntryKind.LINK else None
        return WalkEntry(path, kind, found.size if kind is EntryKind.FILE else None, target, place)

    def _left_out(self, entry: WalkEntry, ignores: _Ignores) -> bool:
        if self.honour_ignore and entry.name == ".git":
            return True
        if self.honour_ignore and _ignored(entry, ignores):
            if len(self.ignored) < MOST_IGNORED:
                self.ignored.append(f"{entry.path}/" if entry.kind is EntryKind.DIRECTORY else entry.path)
            return True
        if self.hidden == "skip" and entry.name.startswith("."):
            if entry.kind is EntryKind.DIRECTORY:
                self.hidden_skipped.append(entry.path)
            return True
        return False


_Ignores = tuple[tuple[str, "GitIgnoreSpec"], ...]
"""Ignore rules, each with its directory (empty, or with a trailing slash). The rules of the innermost directory are
last."""


def _target(files: Files, place: Path) -> str | None:
    try:
        return str(files.readlink(place))
    except OSError:
        return None


def _with_ignore_file(files: Files, folder: str, found: list[WalkEntry], ignores: _Ignores) -> _Ignores:
    place = next((entry.place for entry in found if entry.name == IGNORE_FILE), None)
    rules = None if place is None else _read_rules(files, place)
    return (*ignores, (f"{folder}/" if folder else "", rules)) if rules is not None else ignores


def _read_rules(files: Files, path: Path) -> GitIgnoreSpec | None:
    """Return the rules in an ignore file. Return None if it cannot be read or is not a regular file."""
    from pathspec import GitIgnoreSpec

    try:
        text = read_limited(files, path, _IGNORE_FILE_LIMIT)[0].decode("utf-8", "surrogateescape")
        return GitIgnoreSpec.from_lines(text.splitlines())
    except (NotPlainFile, OSError, ValueError):
        return None


def _ignored(entry: WalkEntry, ignores: _Ignores) -> bool:
    """Check whether an entry is ignored, by git's precedence. The innermost ignore file with a matching rule
    decides."""
    for prefix, rules in reversed(ignores):
        path = entry.path[len(prefix) :] + ("/" if entry.kind is EntryKind.DIRECTORY else "")
        include = rules.check_file(path).include
        if include is not None:
            return include
    return False
