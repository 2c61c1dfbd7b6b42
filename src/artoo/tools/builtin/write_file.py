"""The tool `write_file`, which writes one text file and creates its directories in the workspace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.ports.arguments import as_text
from artoo.ports.sandbox import Roots
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.builtin.read_file import PATH_ALIASES
from artoo.tools.core.to_thread import in_thread
from artoo.tools.core.tool import Arguments, CountsAsItself, Outcome, argument
from artoo.tools.core.workspace_files import WorkspaceWriter
from artoo.tools.files.paths import absolute, in_home, shown, unquoted
from artoo.tools.files.text_files import Text, exact_text
from artoo.tools.resume.in_flight import Announcing

WRITE_SECONDS = 30.0

_NAME = "write_file"


@lru_cache(maxsize=8)
def _spec(roots: Roots) -> ToolSpec:
    """Return the spec, in which the path of the output folder is written as a user would write it."""
    workspace = in_home(roots.workspace, roots)
    return ToolSpec(
        name=_NAME,
        description="create a text file, or replace it whole, with its directories",
        parameters=(
            Parameter(
                "path", f"the file; {workspace}/NAME for a result that was given no place", aliases=PATH_ALIASES
            ),
            Parameter("content", "its whole text", aliases=("file_text",), clear=True),
        ),
        aliases=("write", "write_to_file", "create_file"),
        priority=31,
        body="content",
        whole_lines=True,
        reads=False,
        writes=True,
    )


@dataclass(frozen=True, slots=True)
class WriteFile(Announcing, CountsAsItself):
    """Writes a text file. A new file is written in UTF-8. An existing file keeps its encoding and line ends if they
    can represent the text. Relative paths start at the project root.
    """

    writer: WorkspaceWriter
    roots: Roots
    wall_seconds: float = WRITE_SECONDS

    @property
    def spec(self) -> ToolSpec:
        return _spec(self.roots)

    def target(self, arguments: Arguments) -> str:
        text = argument(arguments, "path")
        try:
            return shown(self._place(text), self.roots)
        except ToolError:
            return text

    async def run(self, arguments: Arguments) -> Outcome:
        """Write the file. Raises ToolError if the path cannot be the name of a file, or if the write fails."""
        text = unquoted(argument(arguments, "path"))
        if text.endswith("/"):
            raise ToolError(f"{text!r} is a directory; give the path of a file in it")
        path = self._place(text)
        content, remark = _as_in(await self._there(path), as_text(arguments["content"]))
        return await self.writer.write(path, content, remark=remark, anew=True)

    async def _there(self, path: Path) -> Text:
        """Read the text that will be replaced. It is empty if the file cannot be read."""
        try:
            before = await self.writer.read(path)
        except ToolError:
            before = None
        return (None if before is None else await in_thread(exact_text, before)) or Text("")

    def _place(self, text: str) -> Path:
        return absolute(unquoted(text), self.roots)


def _as_in(before: Text, content: str) -> tuple[bytes, str]:
    """Encode a text in the encoding of the existing file. If that is not UTF-8 with LF, also return a remark."""
    text = before.with_ends(content)
    try:
        return before.bytes_of(text), before.form and f"as before: {before.form}; python or shell converts it"
    except UnicodeEncodeError as error:
        said = f"now UTF-8: {before.encoding}, in which it was, has no {text[error.start]!r}"
        return text.encode("utf-8", "surrogateescape"), said
