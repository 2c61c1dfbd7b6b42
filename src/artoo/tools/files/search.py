"""Search files by name or pattern, with the limit on results, by Spotlight or by a walk.

On macOS, Spotlight searches the user's folders outside of the project.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.ports.workspace import Files
from artoo.tools.files.glob_patterns import path_pattern
from artoo.tools.files.paths import entry_at, printable
from artoo.tools.files.walk import EntryKind, Walk, WalkLimits

MAX_FOUND = 200
"""Maximum number of paths that a search lists."""

_MAX_CANDIDATES = 20_000
_MAX_ANSWER_BYTES = 8 << 20
_PROGRAM_SECONDS = 10.0

FILES = frozenset({EntryKind.FILE, EntryKind.LINK})
"""Kinds of entries that count as files. A link counts as a file, because links are not followed."""


@dataclass(frozen=True, slots=True)
class FileQuery:
    """A search below `folders` (absolute) for entries of some `kinds`.

    `pattern` applies to the path below a folder, as in `path_pattern`. If it has no slash, it applies to the name
    alone. `indexed`: true if the machine's index may be used, which may leave out ignored files.
    """

    pattern: str
    folders: tuple[Path, ...]
    kinds: frozenset[EntryKind] = FILES
    exact_case: bool = False
    indexed: bool = False

    def matcher(self) -> Callable[[str], bool]:
        """Return a function that checks the path of an entry below a folder. Raises ToolError if the pattern is too
        wide."""
        if self.exact_case:
            return path_pattern(self.pattern).matches
        folded = path_pattern(self.pattern.casefold())
        return lambda path: folded.matches(path.casefold())


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search: absolute paths, those with few directories first. At most MAX_FOUND of all `count`
    paths are listed.

    `how` names the kind of search, for example by an index. `complete` is false if there may be more paths.
    `remarks` name paths that were left out.
    """

    paths: tuple[str, ...]
    count: int
    how: str
    complete: bool = True
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileSearch:
    """Searches for files. `mdfind` is the path of Spotlight's program, or None if the machine has none."""

    mdfind: str | None = None
    limits: WalkLimits = field(default_factory=WalkLimits)

    def search(self, query: FileQuery, files: Files) -> SearchResult:
        """Search among the workspace's `files`. Blocking. Raises ToolError if no folder can be read."""
        if query.indexed and self.mdfind is not None and "/" not in query.pattern:
            found = _spotlight(self.mdfind, query, files)
            # The index may be outdated, so if it gives no result the search is repeated by a walk.
            if found is not None and found.count:
                return found
        return self._walked(query, files)

    def _walked(self, query: FileQuery, files: Files) -> SearchResult:
        matches = query.matcher()
        wants_hidden = any(part.startswith(".") for part in query.pattern.split("/") if part not in (".", ".."))
        paths, remarks, problems = list[str](), list[str](), list[ToolError]()
        seen, complete = 0, True
        for folder in query.folders:
            hidden = "keep" if wants_hidden else "skip"
            walk = Walk(folder, self.limits, files, hidden=hidden, honour_ignore=query.indexed)
            base = str(folder).rstrip("/")
            try:
                paths += [f"{base}/{one.path}" for one in walk if one.kind in query.kinds and matches(one.path)]
            except ToolError as error:
                problems.append(error)
            seen, complete = seen + walk.seen, complete and walk.complete
            remarks += _left_out("hidden directories were not searched", walk.hidden_skipped)
            remarks += _left_out("ignored files were not searched", walk.ignored)
            remarks += _left_out("not readable", walk.unreadable)
        if problems and len(problems) == len(query.folders):
            raise problems[0]
        return _found(paths, f"own walk, {seen} entries", complete=complete, remarks=tuple(remarks))


def _spotlight(program: str, query: FileQuery, files: Files) -> SearchResult | None:
    """Query Spotlight, and filter its answer by the pattern and the current files."""
    places = [part for folder in query.folders for part in ("-onlyin", str(folder))]
    # Spotlight knows only the wildcard `*`, so all other wildcards are replaced by it.
    wide = "".join("*" if one in '?[]{}\\"' else one for one in query.pattern)
    answer = mdfind(program, *places, f'kMDItemFSName == "{wide}"c')
    if answer is None:
        return None
    matches, bases = query.matcher(), [f"{str(folder).rstrip('/')}/" for folder in query.folders]

    def fits(path: str) -> bool:
        if not any(path.startswith(base) and matches(path[len(base) :]) for base in bases):
            return False
        found = entry_at(files, Path(path))
        return found is not None and EntryKind.of(found.mode) in query.kinds

    candidates = answer[:_MAX_CANDIDATES]
    return _found(list(filter(fits, candidates)), "Spotlight", complete=len(answer) < _MAX_CANDIDATES)


def _found(paths: list[str], how: str, *, complete: bool, remarks: tuple[str, ...] = ()) -> SearchResult:
    ordered = sorted(dict.fromkeys(paths), key=lambda path: (path.count("/"), path))
    return SearchResult(tuple(ordered[:MAX_FOUND]), len(ordered), how, complete, remarks)


def _left_out(what: str, paths: list[str]) -> list[str]:
    return [f"({what}: {', '.join(map(printable, paths[:5]))}{' …' if len(paths) > 5 else ''})"] if paths else []


def mdfind(program: str, *arguments: str) -> list[str] | None:
    """Return the paths that Spotlight finds; None if it fails. Time and output are limited. Blocking."""
    argv = (program, "-0", *arguments)
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
            elif process.wait() not in (0, 1):
                return None
        finally:
            too_late.cancel()
    return list(dict.fromkeys(os.fsdecode(one) for one in answer.split(b"\0") if one))
