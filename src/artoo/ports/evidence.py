"""What the validators may look at besides the records: files and a read-only command, nothing that changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FileView:
    """A file as a check sees it: its kind, size in bytes, and text (None when absent, binary or too large)."""

    exists: bool
    is_directory: bool = False
    size: int = 0
    text: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class CommandView:
    """How a read-only command ended. `exit_code` None: it did not end by itself (`problem` says why)."""

    exit_code: int | None
    output: str
    problem: str | None = None


class EvidenceSource(Protocol):
    """Read-only access to the task's project root and workspace."""

    async def file(self, path: str) -> FileView:
        """Looks at a file; relative paths start at the project root, then the workspace. Never raises."""
        ...

    async def command(self, command: str) -> CommandView:
        """Runs a shell command in the read-only sandbox, bounded in time and output. Never raises."""
        ...
