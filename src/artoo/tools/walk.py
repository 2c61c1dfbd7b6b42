"""A bounded walk over a directory tree: breadth first, links never followed, .gitignore honoured when asked."""

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

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE = ".gitignore"
_IGNORE_FILE_LIMIT = 64 * 1024


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
    """One entry. `path` is relative to the root, with `/`, undecodable bytes as surrogates. `size` in bytes."""

    path: str
    kind: Kind
    size: int | None = None
    target: str | None = None

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

    `details` asks for sizes and link targets (one more system call an entry).
    """

    root: Path
    limits: WalkLimits = WalkLimits()
    hidden: Hidden = Hidden.KEEP
    honour_ignore: bool = False
    details: bool = False
    monotonic: Callable[[], float] = time.monotonic
    complete: bool = True
    seen: int = 0
    unreadable: list[str] = field(default_factory=list[str])
    hidden_skipped: list[str] = field(default_factory=list[str])

    def __iter__(self) -> Iterator[Entry]:
        """Entries, shallow ones first, by name within a directory. Raises ToolError when the root is unreadable."""
        deadline = self.monotonic() + self.limits.seconds
        now: deque[tuple[str, _Ignores]] = deque([("", ())])
        later: deque[tuple[str, _Ignores]] = deque()
        while now or later:
            folder, ignores = now.popleft() if now else later.popleft()
            found = self._scan(folder)
            if self.honour_ignore:
                ignores = _with_ignore_file(self.root, folder, found, ignores)
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

    def _scan(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / folder) as entries:
                return sorted(entries, key=lambda item: item.name)
        except OSError as error:
            if not folder:
                raise ToolError(f"cannot list {str(self.root)!r}: {error.strerror}") from error
            self.unreadable.append(folder)
            return []

    def _entry(self, folder: str, item: os.DirEntry[str]) -> Entry:
        path = f"{folder}/{item.name}" if folder else item.name
        kind = _kind(item)
        if not self.details:
            return Entry(path, kind)
        try:
            size = item.stat(follow_symlinks=False).st_size if kind is Kind.FILE else None
            target = os.readlink(item.path) if kind is Kind.LINK else None  # noqa: PTH115  # keeps odd bytes as they are
        except OSError:
            return Entry(path, kind)
        return Entry(path, kind, size, target)

    def _left_out(self, entry: Entry, ignores: _Ignores) -> bool:
        if self.honour_ignore and (entry.name == ".git" or _ignored(entry, ignores)):
            return True
        if self.hidden is Hidden.SKIP and entry.name.startswith("."):
            if entry.kind is Kind.DIRECTORY:
                self.hidden_skipped.append(entry.path)
            return True
        return False


_Ignores = tuple[tuple[str, "GitIgnoreSpec"], ...]
"""(directory with a trailing slash or empty, its rules), innermost last."""


def _kind(item: os.DirEntry[str]) -> Kind:
    try:
        if item.is_symlink():
            return Kind.LINK
        if item.is_dir(follow_symlinks=False):
            return Kind.DIRECTORY
        return Kind.FILE if item.is_file(follow_symlinks=False) else Kind.OTHER
    except OSError:
        return Kind.OTHER


def _with_ignore_file(root: Path, folder: str, found: list[os.DirEntry[str]], ignores: _Ignores) -> _Ignores:
    if not any(item.name == IGNORE_FILE for item in found):
        return ignores
    rules = _read_rules(root / folder / IGNORE_FILE)
    return (*ignores, (f"{folder}/" if folder else "", rules)) if rules is not None else ignores


def _read_rules(path: Path) -> GitIgnoreSpec | None:
    """The rules of an ignore file; None when it cannot be read or is not a plain file."""
    from pathspec import GitIgnoreSpec

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        text = file.read(_IGNORE_FILE_LIMIT).decode("utf-8", "surrogateescape")
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
