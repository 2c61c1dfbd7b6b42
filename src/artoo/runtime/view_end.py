"""The end of a task's view: its difference passes the gate as one act, and is applied whole or kept."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from artoo.contracts.changes import ApplyReport, Change
from artoo.contracts.settling import Ending, Settled
from artoo.ports.confirm import Questions
from artoo.ports.sandbox import ActNote, Limits, SandboxRequest
from artoo.ports.world import View
from artoo.tools.gate import Gate
from artoo.tools.gate_question import Act
from artoo.tools.questions import AskNobody
from artoo.world.classify import Places
from artoo.world.describe import describe
from artoo.world.scan import scan
from artoo.world.stage import Stage
from artoo.world.staged import Staged
from artoo.world.view_place import ViewPlace, Views


@dataclass(frozen=True, slots=True)
class ViewEnd:
    """Implements ports.settling.Settling over the task's view. `request` is what the person asked for."""

    view: View
    artoo_home: Path
    gate: Gate
    request: str

    async def settle(self, ending: Ending, questions: Questions | None) -> Settled:
        """See Settling."""
        await self.view.close()
        place = await asyncio.to_thread(Views(self.artoo_home).find, ending.task_id)
        if place is None:
            return Settled()
        if ending.directive == "abandon":
            return Settled(state="pending", reason="the task was not finished")
        stage = Stage(place.base, place.trunk(), place.lock())
        staged = _Kept(await asyncio.to_thread(self._staged, place, stage), stage)
        if not staged.changes:
            await asyncio.to_thread(stage.discard)
            return Settled()
        asks = self.gate.questions
        self.gate.questions = questions or AskNobody()
        try:
            settlement = await self.gate.settle(staged, Act("task", self.request))
        finally:
            self.gate.questions = asks
            staged.release()
        if settlement.reason is None:
            return Settled(state="applied", applied=settlement.changes)
        return Settled(state="pending", reason=settlement.reason)

    def _staged(self, place: ViewPlace, stage: Stage) -> Staged:
        roots = self.view.roots
        request = SandboxRequest(argv=(), cwd=roots.project, roots=roots, task_id=place.task_id)
        effects = scan(stage.layers, Limits().paths)
        changes = describe(effects, Places.of(roots, self.artoo_home), request.ledger)
        undo_home = self.artoo_home / "undo"
        return Staged(request, stage, effects, changes, started_ns=time.time_ns(), undo_home=undo_home)


@dataclass(slots=True)
class _Kept:
    """A difference that stays where it is when it is not applied."""

    staged: Staged
    stage: Stage
    _held: bool = True

    @property
    def changes(self) -> tuple[Change, ...]:
        return self.staged.changes

    @property
    def digest(self) -> str:
        return self.staged.digest

    async def content(self, path: str, limit: int) -> bytes | None:
        return await self.staged.content(path, limit)

    async def apply(
        self, *, digest: str, paths: Collection[str] | None = None, note: ActNote | None = None
    ) -> ApplyReport:
        report = await self.staged.apply(digest=digest, paths=paths, note=note)
        self._held = not report.applied  # applied, it has released itself
        return report

    async def drop(self) -> None:
        """It is kept."""

    def release(self) -> None:
        if self._held:
            os.close(self.stage.lock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
