"""The directories that a command may see, the access that a policy opens, and a captured output stream.

Reference: SPEC section 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Opened:
    """The additional access that the user's policy grants to a task: the real paths of directories and files, each
    with everything below it, and environment variables."""

    paths: tuple[Path, ...] = ()
    variables: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Roots:
    """The directories that a command sees as copy-on-write copies, given by their real paths. Everything outside of
    these directories is read-only.

    `opened` contains other places that commands and tools may read."""

    home: Path
    workspace: Path
    project: Path
    opened: Opened = Opened()


@dataclass(frozen=True, slots=True)
class Captured:
    """One output stream of a command: its first and its last bytes, and the total number of its bytes."""

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
