"""A difference on its way to another machine, without anything that only means something on its own.

    one line of JSON: the manifest ─┬─ the contents of its files, one after another, in its order

Paths are below the project or the workspace, wherever those are. Owners, inodes and attributes stay behind; kinds,
contents and modes go along, and the digest of what is replaced.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from artoo.contracts.changes import Node
from artoo.contracts.errors import SandboxError

MOST_BYTES = 64 << 20
"""Of the contents of one parcel."""
MOST_PATHS = 20_000
MOST_MANIFEST = 32 << 20
"""Bytes of the manifest's line."""
_LATEST = (1 << 63) - 1
"""Nanoseconds since the epoch: what systems keep as a time."""

Where = Literal["project", "workspace"]


class StaysHere(SandboxError):
    """The difference means nothing on another machine, or is too large for the store; the message says why."""


class Known(BaseModel):
    """A thing at one path. `mode`: its permission bits. `sha256` of what a file says, as views compare it (of git's
    index: what it stages); `size` in bytes; `target` of a link, printable."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    node: Node
    mode: int = Field(default=0, ge=0, le=0o7777)
    size: int = Field(default=0, ge=0)
    sha256: str | None = None
    target: str = ""
    mtime_ns: int = Field(default=0, ge=-_LATEST, le=_LATEST)


class Item(BaseModel):
    """One path, printable, relative to `where`: what the task found there, and what it leaves. None: nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    where: Where
    path: str = Field(min_length=1)
    was: Known | None
    now: Known | None


class Manifest(BaseModel):
    """All of a difference, in path order within each place."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    format: Literal[1] = 1
    items: tuple[Item, ...]

    @property
    def contents(self) -> tuple[Item, ...]:
        """Those whose bytes follow, in their order."""
        return tuple(item for item in self.items if item.now is not None and item.now.node is Node.FILE)
