"""The staged changes of one run: seen, then applied whole or dropped."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Self

from artoo.contracts.changes import ApplyReport, Change, Node, digest_of, printable_path
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import ActNote, SandboxRequest
from artoo.world.began import Meanwhile
from artoo.world.nodes import FILE_FLAGS
from artoo.world.scan import Effect
from artoo.world.stage import Stage
from artoo.world.transaction import apply_effects


async def finish_anyway(work: Coroutine[object, object, ApplyReport]) -> ApplyReport:
    """Awaits `work` to its end even when cancelled meanwhile: an act must not be left running unobserved."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def _read(path: bytes, limit: int) -> bytes | None:
    try:
        descriptor = os.open(path, FILE_FLAGS)
    except OSError:  # a mode without read permission, for somebody who is not root
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(limit)


class NoChanges:
    """Staged changes of a run that has none to offer: a tier without a view, or a run that was stopped."""

    changes: tuple[Change, ...] = ()

    @property
    def digest(self) -> str:
        return digest_of(())

    async def content(self, path: str, limit: int) -> bytes | None:
        return None

    async def apply(
        self, *, digest: str, paths: Collection[str] | None = None, note: ActNote | None = None
    ) -> ApplyReport:
        if digest != self.digest or paths:
            raise SandboxError("this run staged no changes, so none can be applied; run the command again")
        return ApplyReport(applied=True)

    async def drop(self) -> None:
        return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return


class Staged:
    """The staged changes of one run. `undo_home` is where journals and before-images live."""

    def __init__(
        self,
        request: SandboxRequest,
        stage: Stage,
        effects: list[Effect],
        changes: tuple[Change, ...],
        *,
        meanwhile: Meanwhile,
        undo_home: Path,
    ) -> None:
        self._request = request
        self._stage: Stage | None = stage
        self._effects = effects
        self._changes = changes
        self._digest = digest_of(changes)
        self._meanwhile = meanwhile
        self._undo_home = undo_home

    @property
    def changes(self) -> tuple[Change, ...]:
        return self._changes

    @property
    def digest(self) -> str:
        return self._digest

    async def content(self, path: str, limit: int) -> bytes | None:
        return await asyncio.to_thread(self._content, path, limit)

    def _content(self, path: str, limit: int) -> bytes | None:
        """Read as it was scanned: through the layer's own directories, never through a link."""
        if self._stage is None:
            return None
        for effect in self._effects:
            if effect.after is None or effect.after.node is not Node.FILE or effect.after.size > limit:
                continue
            if printable_path(effect.path) == path:
                return _read(os.fsencode(effect.layer.upper) + b"/" + effect.relative, limit)
        return None

    async def apply(
        self, *, digest: str, paths: Collection[str] | None = None, note: ActNote | None = None
    ) -> ApplyReport:
        if self._request.read_only:
            raise SandboxError("this run was read-only: its changes can only be dropped")
        if self._stage is None:
            raise SandboxError("these changes were applied or dropped before; run the command again")
        approved = self._changes if paths is None else self._selected(paths)
        if digest_of(approved) != digest:
            raise SandboxError("the approval is for another act (its digest differs): ask again")
        chosen = frozenset(one.path for one in approved)
        return await finish_anyway(asyncio.to_thread(self._apply, chosen, note))

    def _selected(self, paths: Collection[str]) -> tuple[Change, ...]:
        wanted = frozenset(paths)
        unknown = wanted - {change.path for change in self._changes}
        if unknown:
            raise SandboxError(f"{min(unknown)} is not among the staged changes")
        return tuple(change for change in self._changes if change.path in wanted)

    def _apply(self, paths: frozenset[str], note: ActNote | None) -> ApplyReport:
        report = apply_effects(
            self._with_parents(paths),
            task_id=self._request.task_id,
            undo_home=self._undo_home,
            meanwhile=self._meanwhile,
            ledger=self._request.ledger,
            note=note,
        )
        stage = self._stage
        if report.applied and stage is not None:
            self._stage = None
            stage.discard()
        return report

    def _with_parents(self, paths: frozenset[str]) -> list[Effect]:
        """The effects at `paths`, and the new directories without which they would have no place."""
        chosen = [effect for effect in self._effects if printable_path(effect.path) in paths]
        needed = {
            effect.path[:end]
            for effect in chosen
            if effect.after is not None
            for end in range(len(effect.path))
            if effect.path[end : end + 1] == b"/"
        }
        return [
            effect
            for effect in self._effects
            if printable_path(effect.path) in paths
            or (effect.path in needed and effect.before is None and effect.after is not None)
        ]

    async def drop(self) -> None:
        stage, self._stage = self._stage, None
        if stage is not None:
            await asyncio.to_thread(stage.discard)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.drop()
