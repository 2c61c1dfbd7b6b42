"""File search by name over a person's files: the platform's index where there is one, else an own walk.

find_files, shell find ──► FileIndex ──► Spotlight (mdfind) │ plocate │ walk
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import selectors
import signal
import stat
import subprocess
import time
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import IO, Protocol

from artoo.contracts.errors import ToolError
from artoo.ports.workspace import Files
from artoo.tools.paths import entry_at
from artoo.tools.threads import in_thread
from artoo.tools.walk import Hidden, Kind, Walk, WalkLimits

MAX_FOUND = 200
"""Results that a search returns at most."""

_MAX_CANDIDATES = 20_000
_MAX_ANSWER_BYTES = 8 << 20
_PROGRAM_SECONDS = 10.0
WILDCARDS = re.compile(r"[*?\[]")


class FileKind(Enum):
    """What a search looks for."""

    ANY = "any"
    FILE = "file"
    DIRECTORY = "directory"


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """A search by name below `folders` (absolute).

    `pattern` is a shell pattern for the whole name, or, without wildcards and `whole_name`, a part of it.
    """

    pattern: str
    folders: tuple[Path, ...]
    kind: FileKind = FileKind.ANY
    exact_case: bool = False
    whole_name: bool = False

    @property
    def glob(self) -> str:
        """The shell pattern that the whole name must match."""
        return self.pattern if self.whole_name or WILDCARDS.search(self.pattern) else f"*{self.pattern}*"

    def matches_name(self, name: str) -> bool:
        """Whether a file name fits."""
        if self.exact_case:
            return fnmatch.fnmatchcase(name, self.glob)
        return fnmatch.fnmatchcase(name.casefold(), self.glob.casefold())

    def matches(self, path: str, files: Files) -> bool:
        """Whether an absolute path fits: its name, its place and its kind (as `files` say now)."""
        if not self.matches_name(path.rsplit("/", 1)[-1]):
            return False
        if not any(path.startswith(f"{str(folder).rstrip('/')}/") for folder in self.folders):
            return False
        found = entry_at(files, Path(path))
        if found is None:
            return False
        is_directory = stat.S_ISDIR(found.mode)
        return self.kind is FileKind.ANY or is_directory == (self.kind is FileKind.DIRECTORY)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: absolute paths, shallow first. `how` says in words which search it was."""

    paths: tuple[str, ...]
    how: str
    complete: bool = True


class FileIndex(Protocol):
    """Finds files by name. `files` are those of the workspace in which they must be."""

    async def search(self, query: IndexQuery, files: Files) -> Found:
        """At most MAX_FOUND paths; `complete` is false when there may be more. Raises ToolError."""
        ...


@dataclass(frozen=True, slots=True)
class WalkIndex:
    """No index: a walk of the folders themselves, bounded, honouring .gitignore, hidden places last."""

    limits: WalkLimits = field(default_factory=WalkLimits)

    async def search(self, query: IndexQuery, files: Files) -> Found:
        """Raises ToolError when no folder can be read."""
        return await in_thread(self._search, query, files)

    def _search(self, query: IndexQuery, files: Files) -> Found:
        paths: list[str] = []
        problems: list[ToolError] = []
        seen, complete = 0, True
        for folder in query.folders:
            walk = Walk(folder, self.limits, files, hidden=Hidden.LAST, honour_ignore=True)
            try:
                for entry in walk:
                    if _is_kind(entry.kind, query.kind) and query.matches_name(entry.name):
                        paths.append(f"{str(folder).rstrip('/')}/{entry.path}")
                    if len(paths) > MAX_FOUND:
                        break
            except ToolError as error:
                problems.append(error)
            seen, complete = seen + walk.seen, complete and walk.complete
        if problems and len(problems) == len(query.folders):
            raise problems[0]
        return _found(paths, f"own walk, {seen} entries", complete=complete)


@dataclass(frozen=True, slots=True)
class Spotlight:
    """macOS: `mdfind`, which asks the index of Spotlight."""

    program: str
    fallback: FileIndex

    async def search(self, query: IndexQuery, files: Files) -> Found:
        """Falls back to a walk where Spotlight is off."""
        places = [part for folder in query.folders for part in ("-onlyin", str(folder))]
        escaped = re.sub(r'(["\\])', r"\\\1", re.sub(r"\[[^]]*\]", "?", query.glob))
        condition = f'kMDItemFSName == "{escaped.replace("?", "*")}"c'
        answer = await in_thread(_ask, self.program, "-0", *places, condition)
        if answer is None:
            return await self.fallback.search(query, files)
        return await in_thread(_filtered, answer, query, files, "Spotlight")


@dataclass(frozen=True, slots=True)
class Plocate:
    """Linux: `plocate`. Its database is renewed daily, so that nothing found is not yet an answer."""

    program: str
    fallback: FileIndex

    async def search(self, query: IndexQuery, files: Files) -> Found:
        """Falls back to a walk where the database cannot be read or knows nothing."""
        answer = await in_thread(
            _ask, self.program, "-0", "-b", "-i", "-l", str(_MAX_CANDIDATES), "--", _whole_name(query.glob)
        )
        if answer is None:
            return await self.fallback.search(query, files)
        found = await in_thread(_filtered, answer, query, files, "plocate")
        return found if found.paths else await self.fallback.search(query, files)


def choose_index(platform: str, which: dict[str, str | None]) -> FileIndex:
    """The best search that this machine has. `which` says where `mdfind` and `plocate` are, if anywhere."""
    walk = WalkIndex()
    if platform == "darwin" and (program := which.get("mdfind")):
        return Spotlight(program, walk)
    if platform.startswith("linux") and (program := which.get("plocate")):
        return Plocate(program, walk)
    return walk


def _whole_name(glob: str) -> str:
    """A pattern that plocate matches against the whole name: one without wildcards would match a part."""
    return glob if WILDCARDS.search(glob) else f"[{glob[0]}]{glob[1:]}"


def _is_kind(kind: Kind, wanted: FileKind) -> bool:
    if wanted is FileKind.ANY:
        return True
    return kind is Kind.DIRECTORY if wanted is FileKind.DIRECTORY else kind is Kind.FILE


def _filtered(answer: bytes, query: IndexQuery, files: Files, how: str) -> Found:
    candidates = list(dict.fromkeys(os.fsdecode(one) for one in answer.split(b"\0") if one))
    fitting = [path for path in candidates[:_MAX_CANDIDATES] if query.matches(path, files)]
    return _found(fitting, how, complete=len(candidates) < _MAX_CANDIDATES)


def _found(paths: list[str], how: str, *, complete: bool = True) -> Found:
    ordered = sorted(dict.fromkeys(paths), key=lambda path: (path.count("/"), path))
    return Found(tuple(ordered[:MAX_FOUND]), how, complete and len(ordered) <= MAX_FOUND)


def _ask(*argv: str) -> bytes | None:
    """What an index program answers; None when it cannot answer. Bounded in time and size; blocks."""
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
    with process:
        deadline = time.monotonic() + _PROGRAM_SECONDS
        try:
            answer = _read_answer(process.stdout, deadline)
            if answer is None or len(answer) >= _MAX_ANSWER_BYTES:
                return answer
            return answer if process.wait(max(0.0, deadline - time.monotonic())) in (0, 1) else None
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)


def _read_answer(stream: IO[bytes] | None, deadline: float) -> bytes | None:
    """What a program prints, as much of it as is wanted; None when it has not ended by then."""
    answer = bytearray()
    with selectors.DefaultSelector() as ready:
        if stream is not None:
            ready.register(stream, selectors.EVENT_READ)
        while stream is not None and len(answer) < _MAX_ANSWER_BYTES:
            if not ready.select(deadline - time.monotonic()):
                return None
            chunk = os.read(stream.fileno(), 1 << 16)
            if not chunk:
                break
            answer += chunk
    return bytes(answer)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a program that still runs, with whatever it started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
