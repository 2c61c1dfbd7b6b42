"""The format of a bundle: a change set without anything that means something only on its own machine.

    one line of JSON: the manifest ─┬─ the contents of its files, one after another, in the manifest's order

Paths are relative to the project or to the output folder, wherever those are. Owners, inodes and attributes stay
behind; kinds, contents and modes go along, and the digest of what is replaced.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from artoo.contracts.changes import Node
from artoo.contracts.errors import SandboxError

MOST_BYTES = 64 << 20
"""Bytes of the contents of one bundle: it passes through the store's database."""
MOST_PATHS = 20_000
MOST_MANIFEST = 32 << 20
"""Bytes of the manifest's line."""
_LATEST = (1 << 63) - 1
"""Nanoseconds since the epoch, as far as systems can store them."""

Where = Literal["project", "workspace"]


class StaysHere(SandboxError):
    """The change set means nothing on another machine, or is too large for the store; the message says why."""


class Known(BaseModel):
    """A thing at one path. `mode`: permission bits; `size` in bytes; `target` of a link, printable."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    node: Node
    mode: int = Field(default=0, ge=0, le=0o7777)
    size: int = Field(default=0, ge=0)
    sha256: str | None = None
    target: str = ""
    mtime_ns: int = Field(default=0, ge=-_LATEST, le=_LATEST)


class Item(BaseModel):
    """One printable path, relative to `where`: what the task found there, and what it left. None: nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    where: Where
    path: str = Field(min_length=1)
    was: Known | None
    now: Known | None


class Manifest(BaseModel):
    """All items of a change set, in path order within each place."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    format: Literal[1] = 1
    items: tuple[Item, ...]

    @property
    def contents(self) -> tuple[Item, ...]:
        """The items whose bytes follow the manifest, in their order."""
        return tuple(item for item in self.items if item.now is not None and item.now.node is Node.FILE)
