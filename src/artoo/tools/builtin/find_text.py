"""`find_text`: project files whose text contains a phrase."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Roots
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.paths import printable
from artoo.tools.seeing import Look
from artoo.tools.text_file import NotPlainFile, decode, read_limited
from artoo.tools.threads import in_thread
from artoo.tools.tool import Arguments, Outcome, argument
from artoo.tools.walk import Entry, Hidden, Kind, Walk, WalkLimits
from artoo.world.union import RealFiles

MAX_FILE_BYTES = 4 << 20
MAX_MATCHES = 200
_LINE_CHARACTERS = 160
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
    files: Look = RealFiles
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
        """Lists the matching lines, at most 200; says how many files they are in.

        Raises ToolError for a pattern of file names, which is what `glob` takes.
        """
        phrase = argument(arguments, "phrase")
        if _FILE_PATTERN.fullmatch(phrase):
            raise ToolError(f"{phrase!r} is a pattern of file names; find_text looks inside files. Use glob")
        return await in_thread(self._run, phrase)

    def _run(self, phrase: str) -> Outcome:
        walk = Walk(self.roots.project, self.limits, self.files(), hidden=Hidden.LAST)
        lines: list[str] = []
        files: set[str] = set()
        for path, number, line in self._matches(walk, phrase):
            files.add(path)
            lines.append(f"{printable(path)}:{number}: {line.strip()[:_LINE_CHARACTERS]}")
            if len(lines) == MAX_MATCHES:
                break
        early = len(lines) == MAX_MATCHES or not walk.complete
        found = "file contains" if len(files) == 1 else "files contain"
        return Outcome(
            output="\n".join([f"{len(files)} {found} {phrase}", *lines]),
            status=CallStatus.TIMEOUT if early and not lines else CallStatus.OK,
            truncated=early,
            result_count=len(lines),
            reason="the search stopped at its limit, there may be more; use a longer phrase" if early else None,
        )

    def _matches(self, walk: Walk, phrase: str) -> Iterator[tuple[str, int, str]]:
        for entry in walk:
            if entry.kind is not Kind.FILE:
                continue
            for number, line in enumerate(_lines(entry), 1):
                if phrase in line:
                    yield entry.path, number, line


def _lines(entry: Entry) -> list[str]:
    if entry.place is None:
        return []
    try:
        data, _ = read_limited(entry.place, MAX_FILE_BYTES)
    except (NotPlainFile, OSError):
        return []
    text = decode(data)
    return text.text.splitlines() if text is not None else []
