"""Finds files by name or path pattern: the platform's file index for the user's other folders, else a walk.

find_files, shell find ──► FileIndex ──► mdfind (Spotlight) │ Walk
"""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.ports.workspace import Files
from artoo.tools.core.to_thread import in_thread
from artoo.tools.files.glob_patterns import PathPattern, path_pattern
from artoo.tools.files.paths import entry_at, printable
from artoo.tools.files.walk import Hidden, Kind, Walk, WalkLimits

MAX_FOUND = 200
"""Paths that a search lists at most."""

_MAX_CANDIDATES = 20_000
_MAX_ANSWER_BYTES = 8 << 20
_PROGRAM_SECONDS = 10.0


class FileKind(Enum):
    """What a search looks for. A link is a file: it is not followed."""

    ANY = "any"
    FILE = "file"
    DIRECTORY = "directory"

    def fits(self, kind: Kind) -> bool:
        """True if a directory entry of this kind is looked for."""
        if self is FileKind.ANY:
            return True
        return kind is Kind.DIRECTORY if self is FileKind.DIRECTORY else kind in (Kind.FILE, Kind.LINK)


@dataclass(frozen=True, slots=True)
class FileQuery:
    """A search below `folders` (absolute).

    `pattern` is for the path below a folder, as in `path_pattern`; without a slash it is for the name. `indexed`:
    an index of the machine may answer, and ignored files may be left out.
    """

    pattern: str
    folders: tuple[Path, ...]
    kind: FileKind = FileKind.FILE
    exact_case: bool = False
    indexed: bool = False

    @property
    def wants_hidden(self) -> bool:
        """True if the pattern names something hidden."""
        return any(part.startswith(".") and part not in (".", "..") for part in self.pattern.split("/"))

    def matcher(self) -> Callable[[str], bool]:
        """Return what says whether a path below a folder fits. Raises ToolError for a pattern that is too wide."""
        if self.exact_case:
            return path_pattern(self.pattern).matches
        folded: PathPattern = path_pattern(self.pattern.casefold())
        return lambda path: folded.matches(path.casefold())


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: absolute paths, shallow ones first, at most MAX_FOUND of `count`.

    `how` says which search it was. `complete` is false when there may be more. `remarks` say what was left out.
    """

    paths: tuple[str, ...]
    count: int
    how: str
    complete: bool = True
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileIndex:
    """Searches for files. `ask` makes the command of the machine's index (None: there is none), named `how`."""

    ask: Callable[[FileQuery], tuple[str, ...]] | None = None
    how: str = ""
    limits: WalkLimits = field(default_factory=WalkLimits)

    async def search(self, query: FileQuery, files: Files) -> Found:
        """Search in a thread. `files` are those of the workspace. Raises ToolError when no folder can be read."""
        return await in_thread(self._search, query, files)

    def _search(self, query: FileQuery, files: Files) -> Found:
        if query.indexed and self.ask is not None and "/" not in query.pattern:
            answer = answer_of(self.ask(query))
            found = None if answer is None else _filtered(answer, query, files, self.how)
            # An index may be behind the files, so nothing found is not yet an answer.
            if found is not None and found.count:
                return found
        return self._walked(query, files)

    def _walked(self, query: FileQuery, files: Files) -> Found:
        matches = query.matcher()
        paths, remarks, problems = list[str](), list[str](), list[ToolError]()
        seen, complete = 0, True
        for folder in query.folders:
            hidden = Hidden.KEEP if query.wants_hidden else Hidden.SKIP
            walk = Walk(folder, self.limits, files, hidden=hidden, honour_ignore=query.indexed)
            try:
                base = str(folder).rstrip("/")
                paths += [
                    f"{base}/{entry.path}" for entry in walk if query.kind.fits(entry.kind) and matches(entry.path)
                ]
            except ToolError as error:
                problems.append(error)
            seen, complete = seen + walk.seen, complete and walk.complete
            remarks += _left_out("hidden directories were not searched", walk.hidden_skipped)
            remarks += _left_out("ignored files were not searched", walk.ignored)
            remarks += _left_out("not readable", walk.unreadable)
        if problems and len(problems) == len(query.folders):
            raise problems[0]
        return _found(paths, f"own walk, {seen} entries", complete=complete, remarks=tuple(remarks))


def choose_index(platform: str, which: Callable[[str], str | None]) -> FileIndex:
    """Return the best search that this machine has: Spotlight on macOS, else a walk. `which` finds programs."""
    if platform == "darwin" and (mdfind := which("mdfind")):
        return FileIndex(lambda query: _mdfind(mdfind, query), "Spotlight")
    return FileIndex()


def _mdfind(program: str, query: FileQuery) -> tuple[str, ...]:
    """Spotlight knows `*` alone: what else a pattern has becomes one, and the answer is filtered."""
    places = [part for folder in query.folders for part in ("-onlyin", str(folder))]
    wide = "".join("*" if one in '?[]{}\\"' else one for one in query.pattern)
    return (program, "-0", *places, f'kMDItemFSName == "{wide}"c')


def _filtered(answer: bytes, query: FileQuery, files: Files, how: str) -> Found:
    matches = query.matcher()
    candidates = list(dict.fromkeys(os.fsdecode(one) for one in answer.split(b"\0") if one))
    fitting = [
        path
        for path in candidates[:_MAX_CANDIDATES]
        if any(matches(path[len(base) :]) for base in map(_base, query.folders) if path.startswith(base))
        and _is_of_kind(path, query.kind, files)
    ]
    return _found(fitting, how, complete=len(candidates) < _MAX_CANDIDATES)


def _base(folder: Path) -> str:
    return f"{str(folder).rstrip('/')}/"


def _is_of_kind(path: str, kind: FileKind, files: Files) -> bool:
    """True if the path is there, as the workspace's files say now, and is of the kind."""
    found = entry_at(files, Path(path))
    return found is not None and kind.fits(Kind.DIRECTORY if stat.S_ISDIR(found.mode) else Kind.FILE)


def _found(paths: list[str], how: str, *, complete: bool, remarks: tuple[str, ...] = ()) -> Found:
    ordered = sorted(dict.fromkeys(paths), key=lambda path: (path.count("/"), path))
    return Found(tuple(ordered[:MAX_FOUND]), len(ordered), how, complete, remarks)


def _left_out(what: str, paths: list[str]) -> list[str]:
    return [f"({what}: {', '.join(map(printable, paths[:5]))}{' …' if len(paths) > 5 else ''})"] if paths else []


def answer_of(argv: tuple[str, ...]) -> bytes | None:
    """Return what an index program prints; None when it cannot answer. Bounded in time and size. Blocking."""
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return None
    with process:
        assert process.stdout is not None
        too_late = threading.Timer(_PROGRAM_SECONDS, process.kill)
        too_late.start()
        try:
            answer = process.stdout.read(_MAX_ANSWER_BYTES)
            if len(answer) >= _MAX_ANSWER_BYTES:
                process.kill()
                return answer
            return answer if process.wait() in (0, 1) else None
        finally:
            too_late.cancel()
