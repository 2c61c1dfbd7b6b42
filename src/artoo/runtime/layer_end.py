"""The end of an agent's task: what it did in its private copies goes into them, for these are reviewed later."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.changes import path_bytes
from artoo.contracts.settling import Ending, Settled
from artoo.ports.confirm import Questions
from artoo.ports.settling import Settling
from artoo.ports.world import View
from artoo.tools.paths import is_within
from artoo.world.closing import opened
from artoo.world.view_place import ViewPlace, Views


@dataclass(frozen=True, slots=True)
class LayerEnd:
    """Implements ports.settling.Settling for a task whose project and workspace are private copies in `layer`.

    Nothing in them is the person's yet, so a difference that stays inside takes effect whole; `beyond` settles any
    other.
    """

    view: View
    artoo_home: Path
    layer: Path
    beyond: Settling

    async def settle(self, ending: Ending, questions: Questions | None) -> Settled:
        """See Settling."""
        await self.view.close()
        place = await asyncio.to_thread(Views(self.artoo_home).find, ending.task_id)
        if place is None:
            return Settled()
        return await asyncio.to_thread(self._applied, place) or await self.beyond.settle(ending, questions)

    def _applied(self, place: ViewPlace) -> Settled | None:
        with opened(place, self.artoo_home) as closing:
            found = closing.difference()
            paths = [Path(os.fsdecode(path_bytes(one.path))) for one in found.classes]
            if found.empty or found.conflicts or not all(is_within(path, self.layer) for path in paths):
                return None
            done = closing.apply(found, digest=found.digest)
        return Settled(state="applied", digest=found.digest) if done.whole else None
