"""`find_text`: project files whose text contains a phrase."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.contracts.settling import is_gits
from artoo.contracts.shortened import listed
from artoo.ports.sandbox import Roots
from artoo.ports.tools import Parameter, ToolSpec
from artoo.ports.workspace import Files
from artoo.tools.paths import printable
from artoo.tools.seeing import Look, real_files
from artoo.tools.text_file import NotPlainFile, decode, read_limited
from artoo.tools.threads import in_thread
from artoo.tools.tool import Arguments, Outcome, argument
from artoo.tools.walk import Entry, Hidden, Kind, Walk, WalkLimits

MAX_FILE_BYTES = 4 << 20
MAX_MATCHES = 200
_LINE_CHARACTERS = 160
_NAMED = 5
"""Of what was not searched, paths that are named."""
_NO_TEXT = "not searched, as they are no text"
_UNREADABLE = "not searched, as they cannot be read"
_TOO_LONG = f"searched in their first {MAX_FILE_BYTES >> 20} MiB only"
_FILE_PATTERN = re.compile(r"[\w./-]*\*{1,2}[\w./*-]*\.\w{1,8}")

_SPEC = ToolSpec(
    name="find_text",
    description="search inside all project files for a phrase; shows file, line number, line",
    parameters=(Parameter("phrase", "the exact phrase"),),
    priority=22,
)


@dataclass(frozen=True, slots=True)
class FindText:
    """Searches the text files of the project, case-sensitive and literal; links are not followed."""

    roots: Roots
    files: Look = real_files
    limits: WalkLimits = field(default_factory=WalkLimits)
    wall_seconds: float = 30.0

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return ("find_text",)

    def target(self, arguments: Arguments) -> str:
        return argument(arguments, "phrase")

    async def run(self, arguments: Arguments) -> Outcome:
        """Lists the matching lines, at most 200; says how many files they are in, and what was not searched.

        Raises ToolError for a pattern of file names, which is what `glob` takes.
        """
        phrase = argument(arguments, "phrase")
        if _FILE_PATTERN.fullmatch(phrase):
            raise ToolError(f"{phrase!r} is a pattern of file names; find_text looks inside files. Use glob")
        return await in_thread(self._run, phrase)

    def _run(self, phrase: str) -> Outcome:
        walk = Walk(self.roots.project, self.limits, self.files(), hidden=Hidden.LAST)
        unsearched = defaultdict[str, list[str]](list)
        lines: list[str] = []
        files: set[str] = set()
        for path, number, line in _matches(walk, phrase, unsearched):
            files.add(path)
            lines.append(f"{printable(path)}:{number}: {line.strip()[:_LINE_CHARACTERS]}")
            if len(lines) == MAX_MATCHES:
                break
        early = len(lines) == MAX_MATCHES or not walk.complete
        found = "file contains" if len(files) == 1 else "files contain"
        unsearched[_UNREADABLE] += [f"{folder}/" for folder in walk.unreadable]
        rest = [_remark(why, paths) for why, paths in unsearched.items() if paths]
        return Outcome(
            output="\n".join([f"{len(files)} {found} {phrase}", *lines, *rest]),
            status=CallStatus.TIMEOUT if early and not lines else CallStatus.OK,
            truncated=early,
            result_count=len(lines),
            reason="the search stopped at its limit, there may be more; use a longer phrase" if early else None,
        )


def _matches(walk: Walk, phrase: str, unsearched: defaultdict[str, list[str]]) -> Iterator[tuple[str, int, str]]:
    """Path, number and text of each line that holds it. What was not searched, or in part, goes to `unsearched`."""
    for entry in walk:
        if entry.kind is not Kind.FILE:
            continue
        lines, why = _lines(walk.files, entry)
        if why and not is_gits(f"/{entry.path}"):  # in a repository git's own are many, and nobody asks for them
            unsearched[why].append(entry.path)
        for number, line in enumerate(lines, 1):
            if phrase in line:
                yield entry.path, number, line


def _lines(files: Files, entry: Entry) -> tuple[list[str], str]:
    """The lines of a file, and why they are not all of it."""
    if entry.place is None:
        return [], _UNREADABLE
    try:
        data, size = read_limited(files, entry.place, MAX_FILE_BYTES)
    except (NotPlainFile, OSError):
        return [], _UNREADABLE
    text = decode(data, whole=size <= len(data))
    if text is None:
        return [], _NO_TEXT
    return text.text.splitlines(), _TOO_LONG if size > len(data) else ""


def _remark(why: str, paths: Collection[str]) -> str:
    """A search that passed over files has not shown that none of them holds the phrase."""
    total = f"; {len(paths)} in all" if len(paths) > _NAMED else ""
    return f"({why}: {listed([printable(path) for path in paths], _NAMED)}{total})"
