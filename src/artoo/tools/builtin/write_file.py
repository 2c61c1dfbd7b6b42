"""`write_file`: one text file with its directories; in the project if the request names it, else the workspace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.ports.sandbox import Roots
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.paths import absolute, shown
from artoo.tools.tool import Arguments, Outcome, argument
from artoo.tools.under_way import Announcing
from artoo.tools.writing import FileWriter

WRITE_SECONDS = 30.0

_SPEC = ToolSpec(
    name="write_file",
    description="create a text file; directories are made",
    parameters=(Parameter("path", "the new file"), Parameter("content", "its whole text")),
    priority=31,
    body="content",
    reads=False,
    writes=True,
)


@dataclass(frozen=True, slots=True)
class WriteFile(Announcing):
    """Writes a text file as UTF-8. `in_request` says whether the request names a place for a relative path."""

    writer: FileWriter
    roots: Roots
    in_request: Callable[[str], bool]
    wall_seconds: float = WRITE_SECONDS

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return ("write_file",)

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
        base = self.roots.project if self.in_request(text) else self.roots.workspace
        return absolute(text, self.roots, base)
