"""`glob`: project files by pattern."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Roots
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.path_pattern import path_pattern
from artoo.tools.paths import is_within, printable
from artoo.tools.seeing import Look, real_files
from artoo.tools.threads import in_thread
from artoo.tools.tool import Arguments, Outcome, argument
from artoo.tools.walk import Hidden, Kind, Walk, WalkLimits

MAX_LISTED = 100

_SPEC = ToolSpec(
    name="glob",
    description="list and count project files by name pattern, in all subdirectories",
    parameters=(Parameter("pattern", "a pattern such as *.txt or docs/*.md"),),
    priority=20,
)


@dataclass(frozen=True, slots=True)
class Glob:
    """Files (not directories) of the project whose path matches a pattern; links are listed, never followed."""

    roots: Roots
    files: Look = real_files
    limits: WalkLimits = field(default_factory=WalkLimits)
    wall_seconds: float = 30.0

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return ("glob",)

    def target(self, arguments: Arguments) -> str:
        return argument(arguments, "pattern")

    async def run(self, arguments: Arguments) -> Outcome:
        """Raises ToolError for a pattern outside the project."""
        return await in_thread(self._run, argument(arguments, "pattern"))

    def _run(self, pattern: str) -> Outcome:
        root, inner = self._rooted(pattern)
        matcher = path_pattern(inner)
        wants_hidden = any(part.startswith(".") and part not in (".", "..") for part in inner.split("/"))
        walk = Walk(root, self.limits, self.files(), hidden=Hidden.KEEP if wants_hidden else Hidden.SKIP)
        found = [
            entry.path for entry in walk if entry.kind in (Kind.FILE, Kind.LINK) and matcher.matches(entry.path)
        ]
        prefix = "" if root == self.roots.project else f"{root}/"
        return _outcome(pattern, sorted(prefix + path for path in found), walk)

    def _rooted(self, pattern: str) -> tuple[Path, str]:
        """The root to search and the pattern within it: the project, or the workspace when named whole."""
        text = pattern
        if text.startswith("~/"):
            text = f"{self.roots.home}/{text[2:]}"
        if ".." in text.split("/"):
            raise ToolError(f"{pattern!r} leads out of the project; use find_files with a folder")
        if not text.startswith("/"):
            return self.roots.project, text
        for root in (self.roots.project, self.roots.workspace):
            if is_within(Path(text), root) and Path(text) != root:
                return root, "./" + str(Path(text).relative_to(root))
        raise ToolError(f"{pattern!r} is outside the project {self.roots.project}; use find_files with a folder")


def _outcome(pattern: str, paths: list[str], walk: Walk) -> Outcome:
    count = len(paths)
    lines = [f"{count} {'file matches' if count == 1 else 'files match'} {pattern}"]
    lines += [printable(path) for path in paths[:MAX_LISTED]]
    if count > MAX_LISTED:
        lines.append(f"(the first {MAX_LISTED} of {count} are listed)")
    if walk.hidden_skipped:
        skipped = ", ".join(printable(path) for path in walk.hidden_skipped[:5])
        lines.append(f"(hidden directories were not searched: {skipped})")
    if walk.unreadable:
        lines.append(f"(not readable: {', '.join(printable(path) for path in walk.unreadable[:5])})")
    early = None if walk.complete else "the search stopped at its limit, there may be more; use a narrower pattern"
    return Outcome(
        output="\n".join(lines),
        status=CallStatus.TIMEOUT if early and not count else CallStatus.OK,
        truncated=count > MAX_LISTED or early is not None,
        result_count=count,
        reason=early,
    )
