"""The tool `find_files`, which finds files by name or pattern, with its time limit."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Roots
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.core.to_thread import in_thread
from artoo.tools.core.tool import Arguments, CountsAsItself, Look, Outcome, argument
from artoo.tools.files.paths import absolute, is_directory, is_within, printable, shown
from artoo.tools.files.search import FILES, FileQuery, FileSearch, SearchResult
from artoo.tools.files.suggest_paths import explain_missing
from artoo.tools.files.walk import EntryKind
from artoo.workspace.files.rooted import real_files

SEARCH_SECONDS = 30.0
_WILD = re.compile(r"[*?\[{]")

_SPEC = ToolSpec(
    name="find_files",
    description="list and count files by name, in all subdirectories",
    parameters=(
        Parameter("pattern", "part of a name, or a pattern: *.txt, docs/**/*.md", aliases=("name", "glob")),
        Parameter("folder", "default: the project; ~ is the home", False, ("path", "directory")),
    ),
    priority=10,
    only_reads=True,
    aliases=("glob", "list_files"),
)


@dataclass(frozen=True, slots=True)
class FindFiles(CountsAsItself):
    """Finds files (not directories) whose path below a folder matches a pattern. A link is listed, but not
    followed."""

    search: FileSearch
    roots: Roots
    files: Look = real_files
    wall_seconds: float = SEARCH_SECONDS
    spec: ToolSpec = _SPEC

    def target(self, arguments: Arguments) -> str:
        pattern, folder = argument(arguments, "pattern"), argument(arguments, "folder").rstrip("/")
        return f"{pattern} in {folder}" if folder else pattern

    async def run(self, arguments: Arguments) -> Outcome:
        """Run the search. Raises ToolError if the folder does not exist or cannot be read."""
        folder, pattern = _placed(argument(arguments, "pattern"), argument(arguments, "folder"), self.roots)
        files = self.files()
        if not await in_thread(is_directory, files, folder):
            raise ToolError(await in_thread(explain_missing, folder, self.roots, files))
        own = any(is_within(folder, root) for root in (self.roots.project, self.roots.workspace))
        query = FileQuery(pattern, (folder,), indexed=not own)
        found = await in_thread(self.search.search, query, files)
        return outcome_of_search(query, found, self.roots, argument(arguments, "pattern"))


def _placed(pattern: str, folder: str, roots: Roots) -> tuple[Path, str]:
    """Return the folder and the pattern below it. An absolute pattern, or one with `..`, determines both itself,
    whatever the `folder` argument is."""
    base = absolute(folder, roots) if folder else roots.project
    if pattern.startswith(("/", "~/")) or ".." in pattern.split("/"):
        parts = pattern.split("/")
        fixed = next((index for index, part in enumerate(parts) if _WILD.search(part)), len(parts) - 1)
        base = absolute("/".join(parts[:fixed]) or "/", roots, base)
        pattern = "./" + "/".join(parts[fixed:])
    if "/" not in pattern and not _WILD.search(pattern):
        pattern = f"*{pattern}*"
    return base, pattern


def outcome_of_search(query: FileQuery, found: SearchResult, roots: Roots, asked: str) -> Outcome:
    """Convert the result of a search to a tool's outcome."""
    # An empty result is a valid answer, unless the search stopped early.
    lines = [f"{found.count} {'file matches' if found.count == 1 else 'files match'} {asked}"]
    lines += [shown(Path(path), roots) for path in found.paths]
    if found.count > len(found.paths):
        lines.append(f"(the first {len(found.paths)} of {found.count} are listed)")
    early = None
    if not found.complete:
        early = "the search stopped at its limit, there may be more; name a folder or a narrower pattern"
    return Outcome(
        output="\n".join((*lines, *found.remarks)),
        status=CallStatus.TIMEOUT if early and not found.count else CallStatus.OK,
        ran=f"{_as_command(query)}  # answered by {found.how}" if query.indexed else None,
        truncated=not found.complete or found.count > len(found.paths),
        result_count=found.count,
        reason=early,
    )


def _as_command(query: FileQuery) -> str:
    """Write the search as a `find` command, which users and rules can read."""
    directories = frozenset({EntryKind.DIRECTORY})
    kind = {FILES: ("-type", "f"), directories: ("-type", "d")}.get(query.kinds, ())
    test = "-name" if query.exact_case else "-iname"
    return shlex.join(("find", *map(printable, query.folders), *kind, test, query.pattern))
