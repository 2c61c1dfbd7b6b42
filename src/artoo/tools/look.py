"""Takes the snapshot that a listing is made of: a short walk, the heads of named files, the operator's guide."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from artoo.contracts.changes import PathClass
from artoo.contracts.errors import ToolError
from artoo.ports.sandbox import Roots
from artoo.ports.surroundings import Surroundings
from artoo.tools.listing import (
    LISTING_CHARACTERS,
    Head,
    Snapshot,
    describe,
    name_files,
    named_in,
    pointers,
    shown_paths,
)
from artoo.tools.output import head_tail
from artoo.tools.paths import absolute
from artoo.tools.text_file import NotPlainFile, decode, kind_of_bytes, read_limited
from artoo.tools.threads import in_thread
from artoo.tools.walk import Hidden, Kind, Walk, WalkLimits
from artoo.world.classify import Places

GUIDE_FILE = "AGENTS.md"
GUIDE_CHARACTERS = 2_000
_LOOK = WalkLimits(entries=20_000, seconds=1.5)
_WALL_SECONDS = 6.0
_HEAD_BYTES = 8_192
_MOST_HEADS = 4
_HEAD_LINES = 3


@dataclass(frozen=True, slots=True)
class ProjectLook:
    """Implements `ports.surroundings.SurroundingsSource` over the disk."""

    roots: Roots
    places: Places
    characters: int = LISTING_CHARACTERS
    limits: WalkLimits = field(default_factory=lambda: _LOOK)

    async def look(self, request: str) -> Surroundings:
        """What is there that matters for `request`. Never raises; what cannot be seen is said in the listing."""
        try:
            async with asyncio.timeout(_WALL_SECONDS):
                return await in_thread(self._look, request)
        except TimeoutError:
            return Surroundings(listing="The project directory did not answer in time; it is not listed.")
        except (ToolError, OSError) as error:
            return Surroundings(listing=f"The project directory is not listed: {error}")

    def _look(self, request: str) -> Surroundings:
        snapshot = self._snapshot(request)
        named = name_files(snapshot, request)
        snapshot = self._with_heads(snapshot, [path for one in named for path in shown_paths(one)])
        snapshot = self._with_heads(snapshot, [path for _, path in pointers(snapshot, named)])
        return describe(snapshot, request, self.characters)

    def _with_heads(self, snapshot: Snapshot, paths: Iterable[str]) -> Snapshot:
        """With the heads of these files too, as far as so many are shown."""
        heads = dict(snapshot.heads)
        for path in dict.fromkeys(paths):
            if len(heads) < _MOST_HEADS and path not in heads:
                head = self._head(self.roots.project / path)
                heads |= {path: head} if head is not None else {}
        return replace(snapshot, heads=heads)

    def _snapshot(self, request: str) -> Snapshot:
        walk = Walk(self.roots.project, self.limits, hidden=Hidden.LAST, honour_ignore=True, details=True)
        entries = tuple(walk)
        links = (entry.path for entry in entries if entry.kind is Kind.LINK)
        return Snapshot(
            entries=entries,
            complete=walk.complete,
            broken=frozenset(path for path in links if not _there(self.roots.project / path)),
            outside=frozenset(mention.name for mention in named_in(request) if self._elsewhere(mention.name)),
            guide=self._guide(),
        )

    def _elsewhere(self, name: str) -> bool:
        """Whether a named file is there though the walk did not meet it: absolute, ignored, in the workspace."""
        try:
            candidates = (absolute(name, self.roots), absolute(name, self.roots, self.roots.workspace))
        except ToolError:
            return False
        return any(_there(path) for path in candidates)

    def _head(self, path: Path) -> Head | None:
        real = Path(os.path.realpath(path))
        if self.places.classify(os.fsencode(real)) in (PathClass.SECRET, PathClass.ARTOO):
            return Head(instead="holds credentials, not shown")
        try:
            data, size = read_limited(real, _HEAD_BYTES)
        except NotPlainFile:
            return None
        except OSError as error:
            return Head(instead=f"cannot be read: {error.strerror}")
        if not data:
            return Head(instead="is empty")
        text = decode(data, whole=size <= _HEAD_BYTES)
        if text is None:
            return Head(instead=f"is {kind_of_bytes(data)}, not text")
        lines = text.text.splitlines()
        return Head(lines=tuple(lines[:_HEAD_LINES]), whole=size <= _HEAD_BYTES and len(lines) <= _HEAD_LINES)

    def _guide(self) -> str:
        """The operator's standing instructions, which lie in the workspace: a project may be anybody's."""
        try:
            data, _ = read_limited(self.roots.workspace / GUIDE_FILE, 4 * GUIDE_CHARACTERS)
        except (NotPlainFile, OSError):
            return ""
        text = decode(data, whole=False)
        return "" if text is None else head_tail(text.text.strip(), GUIDE_CHARACTERS)


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False
