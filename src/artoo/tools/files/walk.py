"""A bounded walk over a directory: breadth first, no link followed, .gitignore honoured when asked."""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.contracts.errors import ToolError
from artoo.ports.workspace import Files, FileStat
from artoo.tools.core.live_files import real_files
from artoo.tools.files.text_files import NotPlainFile, read_limited

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE = ".gitignore"
_IGNORE_FILE_LIMIT = 64 * 1024
MOST_IGNORED = 100
"""Names of what is left out that a walk keeps."""


class Kind(Enum):
    """What a directory entry is, the link itself and not what it points to."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


class Hidden(Enum):
    """What becomes of entries whose name starts with a dot: left out, visited after all others, or like others."""

    SKIP = "skip"
    LAST = "last"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. `path` is relative to the root, with `/`, undecodable bytes as surrogates. `size` in bytes.

    `place` is its resolved absolute path; None for an entry that is not read.
    """

    path: str
    kind: Kind
    size: int | None = None
    target: str | None = None
    place: Path | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def depth(self) -> int:
        """0 for entries of the root itself."""
        return self.path.count("/")


@dataclass(frozen=True, slots=True)
class WalkLimits:
    """Bounds of one walk: entries seen, seconds taken."""

    entries: int = 200_000
    seconds: float = 10.0


@dataclass(slots=True)
class Walk:
    """A walk and what it met. Iterate once; then `complete` says whether everything was seen.

    `files` are those that are walked. `details` asks for sizes and link targets.
    """

    root: Path
    limits: WalkLimits = WalkLimits()
    files: Files = field(default_factory=real_files)
    hidden: Hidden = Hidden.KEEP
    honour_ignore: bool = False
    details: bool = False
    monotonic: Callable[[], float] = time.monotonic
    complete: bool = True
    seen: int = 0
    unreadable: list[str] = field(default_factory=list[str])
    empty: list[str] = field(default_factory=list[str])
    hidden_skipped: list[str] = field(default_factory=list[str])
    ignored: list[str] = field(default_factory=list[str])
    """What an ignore file left out, shallow ones first, but for `.git`; of such a directory nothing more."""

    def __iter__(self) -> Iterator[Entry]:
        """Entries, shallow ones first, by name within a directory. Raises ToolError when the root is unreadable."""
        deadline = self.monotonic() + self.limits.seconds
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
            for item in found:
                if self.seen >= self.limits.entries or self.monotonic() > deadline:
                    self.complete = False
                    return
                entry = self._entry(folder, item)
                if self._left_out(entry, ignores):
                    continue
                self.seen += 1
                yield entry
                if entry.kind is Kind.DIRECTORY:
                    last = self.hidden is Hidden.LAST and entry.name.startswith(".")
                    (later if last else now).append((entry.path, ignores))

    def _root(self) -> Path:
        try:
            return self.files.resolve(self.root)
        except OSError as error:
            raise ToolError(f"cannot list {str(self.root)!r}: {error.strerror}") from error

    def _scan(self, root: Path, folder: str) -> list[_Item]:
        directory = root / folder
        try:
            names = self.files.names(directory)
        except OSError as error:
            if not folder:
                raise ToolError(f"cannot list {str(self.root)!r}: {error.strerror}") from error
            self.unreadable.append(folder)
            return []
        items = (_item(self.files, directory, os.fsdecode(name)) for name in names)
        return sorted((item for item in items if item is not None), key=lambda item: item.name)

    def _entry(self, folder: str, item: _Item) -> Entry:
        path = f"{folder}/{item.name}" if folder else item.name
        kind = _kind(item.status.mode)
        if not self.details:
            return Entry(path, kind, place=item.place)
        target = _target(self.files, item.place) if kind is Kind.LINK else None
        return Entry(path, kind, item.status.size if kind is Kind.FILE else None, target, item.place)

    def _left_out(self, entry: Entry, ignores: _Ignores) -> bool:
        if self.honour_ignore and entry.name == ".git":
            return True
        if self.honour_ignore and _ignored(entry, ignores):
            if len(self.ignored) < MOST_IGNORED:
                self.ignored.append(f"{entry.path}/" if entry.kind is Kind.DIRECTORY else entry.path)
            return True
        if self.hidden is Hidden.SKIP and entry.name.startswith("."):
            if entry.kind is Kind.DIRECTORY:
                self.hidden_skipped.append(entry.path)
            return True
        return False


_Ignores = tuple[tuple[str, "GitIgnoreSpec"], ...]
"""(directory with a trailing slash or empty, its rules), innermost last."""


@dataclass(frozen=True, slots=True)
class _Item:
    """One name of a directory, and what lies there."""

    name: str
    place: Path
    status: FileStat


def _item(files: Files, directory: Path, name: str) -> _Item | None:
    """None for what went away meanwhile."""
    place = directory / name
    found = files.stat(place)
    return None if found is None else _Item(name, place, found)


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return Kind.FILE
    if stat.S_ISDIR(mode):
        return Kind.DIRECTORY
    return Kind.LINK if stat.S_ISLNK(mode) else Kind.OTHER


def _target(files: Files, place: Path) -> str | None:
    try:
        return str(files.readlink(place))
    except OSError:
        return None


def _with_ignore_file(files: Files, folder: str, found: list[_Item], ignores: _Ignores) -> _Ignores:
    place = next((item.place for item in found if item.name == IGNORE_FILE), None)
    rules = None if place is None else _read_rules(files, place)
    return (*ignores, (f"{folder}/" if folder else "", rules)) if rules is not None else ignores


def _read_rules(files: Files, path: Path) -> GitIgnoreSpec | None:
    """The rules of an ignore file; None when it cannot be read or is not a plain file."""
    from pathspec import GitIgnoreSpec

    try:
        text = read_limited(files, path, _IGNORE_FILE_LIMIT)[0].decode("utf-8", "surrogateescape")
    except (NotPlainFile, OSError):
        return None
    try:
        return GitIgnoreSpec.from_lines(text.splitlines())
    except ValueError:
        return None


def _ignored(entry: Entry, ignores: _Ignores) -> bool:
    """Git's rule: the innermost ignore file with a matching rule decides."""
    for prefix, rules in reversed(ignores):
        path = entry.path[len(prefix) :] + ("/" if entry.kind is Kind.DIRECTORY else "")
        include = rules.check_file(path).include
        if include is not None:
            return include
    return False
