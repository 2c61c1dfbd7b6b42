"""Define the user's directories and a command's output, for the sandbox and its callers (SPEC section 8)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Opened:
    """The places that the user's policy lines open to a task: real paths and all below, names of variables."""

    paths: tuple[Path, ...] = ()
    variables: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Roots:
    """The directories of which a command sees a copy-on-write view. Real paths; everything else is read-only.

    `opened`: the other places that commands and tools may read.
    """

    home: Path
    workspace: Path
    project: Path
    opened: Opened = Opened()


@dataclass(frozen=True, slots=True)
class Captured:
    """One output stream: its first and last bytes, and how many there were."""

    head: bytes = b""
    tail: bytes = b""
    total_bytes: int = 0

    @property
    def truncated(self) -> bool:
        return self.total_bytes > len(self.head) + len(self.tail)

    @property
    def text(self) -> str:
        gap = b""
        if self.truncated:
            gap = b"\n[... %d bytes left out ...]\n" % (self.total_bytes - len(self.head) - len(self.tail))
        return (self.head + gap + self.tail).decode("utf-8", "replace")
