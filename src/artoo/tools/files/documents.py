"""The document suffixes (Word, Excel, PDF and others), and their conversion in the sandbox, with its timeout."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.sandbox.reading.programs import this_python
from artoo.tools.core.command_runner import Command, python
from artoo.tools.core.workspace_commands import WorkspaceCommands

SUFFIXES = frozenset((".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".ipynb", ".pdf"))
SECONDS = 90.0
_MARK_ROOM = 160
"""Number of characters reserved for the line that explains how to read on."""


@dataclass(frozen=True, slots=True)
class Documents:
    """Converts documents to text by commands that `runner` runs."""

    runner: WorkspaceCommands
    interpreter: str = this_python()

    async def text(self, path: Path, first: int, most: int) -> str:
        """Return lines of a document's text, with an explanation how to read on. Raises ToolError if it cannot be
        read."""
        room = max(1, self.runner.kept - _MARK_ROOM)
        command = (*python(_script(), self.interpreter), str(path), str(first), str(most), str(room))
        outcome = await self.runner.run(Command(command, f"read {path.name}", seconds=SECONDS, by="read_file"))
        if outcome.status is not CallStatus.OK:
            problem = outcome.error_output.strip().splitlines()[-1:] or [outcome.reason or "it cannot be read"]
            raise ToolError(f"{path.name}: {problem[0]}")
        return outcome.output


@cache
def _script() -> str:
    return (Path(__file__).parents[1] / "builtin" / "document_text.py").read_text("utf-8")
