"""`write_file`: one text file with its directories, in the task's view."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.ports.sandbox import Roots
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.paths import absolute, in_home, shown
from artoo.tools.tool import Arguments, Outcome, argument
from artoo.tools.under_way import Announcing
from artoo.tools.writing import FileWriter

WRITE_SECONDS = 30.0

_NAME = "write_file"


@lru_cache(maxsize=8)
def _spec(roots: Roots) -> ToolSpec:
    """It names the workspace, as a person would write its path."""
    workspace = in_home(roots.workspace, roots)
    return ToolSpec(
        name=_NAME,
        description="create a text file, or replace it whole; directories are made",
        parameters=(
            Parameter("path", f"the file; {workspace}/NAME for a result that was given no place"),
            Parameter("content", "its whole text"),
        ),
        priority=31,
        body="content",
        whole_lines=True,
        reads=False,
        writes=True,
    )


@dataclass(frozen=True, slots=True)
class WriteFile(Announcing):
    """Writes a text file as UTF-8. A relative path is one of the project, where the person stands."""

    writer: FileWriter
    roots: Roots
    wall_seconds: float = WRITE_SECONDS

    @property
    def spec(self) -> ToolSpec:
        return _spec(self.roots)

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return (_NAME,)

    def target(self, arguments: Arguments) -> str:
        text = argument(arguments, "path")
        try:
            return shown(self._place(text), self.roots)
        except ToolError:
            return text

    async def run(self, arguments: Arguments) -> Outcome:
        """Raises ToolError when the path is no path for a file or the disk does not let it."""
        text = argument(arguments, "path")
        if text.endswith("/"):
            raise ToolError(f"{text!r} is a directory; give the path of a file in it")
        return await self.writer.write(self._place(text), arguments["content"].encode("utf-8", "surrogateescape"))

    def _place(self, text: str) -> Path:
        return absolute(text, self.roots)
