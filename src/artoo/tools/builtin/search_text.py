"""The tool `search_text`, which finds lines by regular expression, with limits on matches and file size."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.contracts.settling import is_gits
from artoo.contracts.text import listed
from artoo.ports.sandbox import Roots
from artoo.ports.tools import INTEGER, Parameter, ToolSpec
from artoo.ports.workspace import Files
from artoo.tools.core.to_thread import in_thread
from artoo.tools.core.tool import Arguments, CountsAsItself, Look, Outcome, argument, number
from artoo.tools.files.glob_patterns import path_pattern
from artoo.tools.files.paths import existing, found_at, is_directory, printable, shown
from artoo.tools.files.suggest_paths import explain_missing
from artoo.tools.files.text_files import NotPlainFile, decode, read_limited
from artoo.tools.files.walk import EntryKind, Walk, WalkEntry, WalkLimits
from artoo.workspace.files.rooted import real_files

MAX_FILE_BYTES = 4 << 20
MAX_MATCHES = 200
MAX_CONTEXT = 60
_LINE_CHARACTERS = 160
_MATCH_SECONDS = 2.0
"""Time limit in seconds for one expression on all lines of a file, because matching may backtrack without end."""
_NAMED = 5
"""At most this many paths of files that were not searched are named."""
_NO_TEXT = "not searched, as they are no text"
_UNREADABLE = "not searched, as they cannot be read"
_TOO_LONG = f"searched in their first {MAX_FILE_BYTES >> 20} MiB only"

_SPEC = ToolSpec(
    name="search_text",
    description="search inside files; shows file, line number, line",
    parameters=(
        Parameter("pattern", "a regular expression, or the exact text", aliases=("phrase", "query", "regex")),
        Parameter("path", "file or folder; default: the project", False, ("folder", "directory")),
        Parameter("glob", "only such files: *.py", False, ("include",)),
        Parameter("context", "lines around each match", False, ("context_lines",), INTEGER),
    ),
    priority=22,
    only_reads=True,
    aliases=("find_text", "grep", "grep_search"),
)


@dataclass(frozen=True, slots=True)
class SearchText(CountsAsItself):
    """Searches the lines of text files, case-sensitively. Links are not followed. Hidden folders are searched
    last."""

    roots: Roots
    files: Look = real_files
    limits: WalkLimits = field(default_factory=WalkLimits)
    wall_seconds: float = 30.0
    spec: ToolSpec = _SPEC

    def target(self, arguments: Arguments) -> str:
        pattern, path = argument(arguments, "pattern"), argument(arguments, "path").rstrip("/")
        return f"{pattern} in {path}" if path else pattern

    async def run(self, arguments: Arguments) -> Outcome:
        """List the matching lines (at most 200), the number of files, and the files that were not searched.

        Raises ToolError for a path that does not exist.
        """
        around = max(0, min(round(number(arguments, "context", 0)), MAX_CONTEXT))
        search = _Search(argument(arguments, "pattern"), argument(arguments, "glob"), around)
        return await in_thread(self._run, search, argument(arguments, "path"))

    def _run(self, search: _Search, path: str) -> Outcome:
        files = self.files()
        place = existing(path, self.roots, files) if path else self.roots.project
        if found_at(files, place) is None:
            raise ToolError(explain_missing(place, self.roots, files))
        walk = Walk(place, self.limits, files, hidden="last")
        entries = walk if is_directory(files, place) else [_alone(place, files)]
        prefix = "" if place == self.roots.project else f"{shown(place, self.roots)}/"
        lines, holding, found_lines = list[str](), set[str](), 0
        for entry in entries:
            name = shown(place, self.roots) if entry.path == "." else printable(f"{prefix}{entry.path}")
            last = 0
            for at, line, is_match in _matches(search, entry, name, files):
                if search.around:
                    # The path of many neighbouring lines is written once.
                    lines += [f"{name}:"] if name not in holding else ["--"] if at != last + 1 else []
                holding.add(name)
                found_lines += is_match
                last = at
                where = f"{at}{':' if is_match else '-'}" if search.around else f"{name}:{at}:"
                lines.append(f"{where} {line.rstrip()[:_LINE_CHARACTERS]}")
                if found_lines == MAX_MATCHES:
                    break
            if found_lines == MAX_MATCHES:
                break
        early = found_lines == MAX_MATCHES or not walk.complete
        search.unsearched[_UNREADABLE] += [printable(f"{prefix}{folder}/") for folder in walk.unreadable]
        found = f"{len(holding)} {'file contains' if len(holding) == 1 else 'files contain'} {search.pattern}"
        if early and not lines:  # "0 files contain" would read like a finding
            found = f"not searched to the end, and nothing found so far: {search.pattern}"
        rest = [_remark(why, paths) for why, paths in search.unsearched.items() if paths]
        return Outcome(
            output="\n".join([found, *lines, *search.remarks, *rest]),
            status=CallStatus.TIMEOUT if early and not lines else CallStatus.OK,
            truncated=early,
            result_count=found_lines,
            reason="the search stopped at its limit, there may be more; use a longer pattern, a path or a glob"
            if early
            else None,
        )


class _Search:
    """One pattern, and the files in which it could not be searched."""

    def __init__(self, pattern: str, glob: str, around: int = 0) -> None:
        """Compile the pattern. If the text is not a valid regular expression, it is searched literally.

        `around`: number of lines that are shown before and after each match.
        """
        import regex

        self.pattern = pattern
        self.around = around
        self.remarks: list[str] = []
        self.unsearched = defaultdict[str, list[str]](list)
        self._glob = path_pattern(glob) if glob else None
        try:
            self._expression = regex.compile(pattern)
        except regex.error as error:
            self._expression = regex.compile(regex.escape(pattern))
            self.remarks.append(f"(searched as plain text: it is no regular expression, {error})")

    def takes(self, entry: WalkEntry) -> bool:
        """Check whether the file's name matches the glob."""
        return self._glob is None or entry.path == "." or self._glob.matches(entry.path)

    def lines(self, text: str, name: str) -> Iterator[tuple[int, str, bool]]:
        """Yield the lines that contain or match the pattern, and `around` lines before and after each of them.

        The third value is true for a match itself.
        """
        before, behind = deque[tuple[int, str]](maxlen=self.around), 0
        left = _MATCH_SECONDS
        try:
            for at, line in enumerate(text.splitlines(), 1):
                # A thread that searches cannot be stopped from outside, so the time of all lines is added up.
                started = time.monotonic()
                found = self.pattern in line or self._expression.search(line, timeout=max(left, 0.001))
                left -= time.monotonic() - started
                if found:
                    yield from ((earlier, text, False) for earlier, text in before)
                    before.clear()
                    behind = self.around
                    yield at, line, True
                elif behind:
                    behind -= 1
                    yield at, line, False
                else:
                    before.append((at, line))
        except TimeoutError:
            self.unsearched["not searched to the end, as the expression took too long"].append(name)


def _matches(search: _Search, entry: WalkEntry, name: str, files: Files) -> Iterator[tuple[int, str, bool]]:
    """Yield each line to show with its number, and whether it matches or is only shown around a match.

    Files that could not be searched are added to `unsearched`.
    """
    if entry.kind is not EntryKind.FILE or not search.takes(entry):
        return
    text, why = _text(files, entry)
    # A repository contains many internal files of git, for which no user searches.
    if why and not is_gits(f"/{entry.path}"):
        search.unsearched[why].append(name)
    if text is not None:
        yield from search.lines(text, name)


def _alone(place: Path, files: Files) -> WalkEntry:
    return WalkEntry(".", EntryKind.FILE, place=files.resolve(place))


def _text(files: Files, entry: WalkEntry) -> tuple[str | None, str]:
    """Return the text of a file. If it is missing or incomplete, also return the reason."""
    if entry.place is None:
        return None, _UNREADABLE
    try:
        data, size = read_limited(files, entry.place, MAX_FILE_BYTES)
    except (NotPlainFile, OSError):
        return None, _UNREADABLE
    text = decode(data, whole=size <= len(data))
    if text is None:
        return None, _NO_TEXT
    return text.text, _TOO_LONG if size > len(data) else ""


def _remark(why: str, paths: Collection[str]) -> str:
    """Name the files that were not searched, because they may contain the text nevertheless."""
    total = f"; {len(paths)} in all" if len(paths) > _NAMED else ""
    return f"({why}: {listed(list(paths), _NAMED)}{total})"
