"""`find_files`: the person's own files by name, through the best index that the machine has."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Roots
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.index import FileIndex, FileKind, Found, IndexQuery
from artoo.tools.nearby import explain_missing
from artoo.tools.paths import absolute, is_directory, printable
from artoo.tools.seeing import Look, real_files
from artoo.tools.threads import in_thread
from artoo.tools.tool import Arguments, Outcome, argument

SEARCH_SECONDS = 30.0

_SPEC = ToolSpec(
    name="find_files",
    description="find personal files outside the project by their name",
    parameters=(
        Parameter("name", "a part of the name"),
        Parameter("folder", "where to look (default: home)", required=False),
    ),
    priority=10,
)


@dataclass(frozen=True, slots=True)
class FindFiles:
    """Searches by name below the home directory or another folder."""

    index: FileIndex
    roots: Roots
    files: Look = real_files
    wall_seconds: float = SEARCH_SECONDS

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return ("find_files",)

    def target(self, arguments: Arguments) -> str:
        name, folder = argument(arguments, "name"), argument(arguments, "folder", "~").rstrip("/")
        return name if folder in ("", "~") else f"{name} in {folder}"

    async def run(self, arguments: Arguments) -> Outcome:
        """Raises ToolError when the folder is not there or cannot be read."""
        name = argument(arguments, "name")
        if "/" in name:
            raise ToolError(f"{name!r} is a path; give the name only, and the folder as 'folder'")
        folder = absolute(argument(arguments, "folder") or "~", self.roots)
        files = self.files()
        if not await in_thread(is_directory, files, folder):
            raise ToolError(await in_thread(explain_missing, folder, self.roots, files))
        query = IndexQuery(pattern=name, folders=(folder,))
        return outcome_of_search(query, await self.index.search(query, files), self.roots, redirected=False)


def outcome_of_search(query: IndexQuery, found: Found, roots: Roots, *, redirected: bool = True) -> Outcome:
    """A search as a tool's outcome. "Nothing found" is an answer, unless the search had to stop early."""
    places = ", ".join(printable(folder) for folder in query.folders)
    count = len(found.paths)
    lines = [f"{count} found named {query.glob} in {places}", *(printable(path) for path in found.paths)]
    early = None
    if not found.complete:
        early = "the search stopped at its limit, there may be more; name a folder to look in"
    nothing_known = early is not None and count == 0
    return Outcome(
        output="\n".join(lines),
        status=CallStatus.TIMEOUT if nothing_known else CallStatus.OK,
        exit_code=0 if redirected and not nothing_known else None,
        ran=_as_command(query, found),
        truncated=not found.complete,
        result_count=count,
        reason=early,
    )


def _as_command(query: IndexQuery, found: Found) -> str:
    """The search as the shell would say it, with a remark that it was no `find`: for people and for rules."""
    test = "-name" if query.exact_case else "-iname"
    kind = {FileKind.FILE: ("-type", "f"), FileKind.DIRECTORY: ("-type", "d")}.get(query.kind, ())
    words = ("find", *(printable(folder) for folder in query.folders), *kind, test, query.glob)
    return f"{shlex.join(words)}  # answered by a file index: {found.how}"
