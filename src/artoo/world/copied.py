"""Views where no overlay can be had: commands work in a copy of project and workspace (`mirror`).

Paths of the real directories are those of the copies while a command runs, in what it is given and in what it
prints. What it changed in the copies is left in the layers, so that a view is the same whatever its tier: folded,
joined and noted as any other.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Captured, Roots, RunStatus, SandboxRequest, TierName
from artoo.world.closed import LAYER_TREES, closed_paths
from artoo.world.mirror import CopyLimits, Mirror
from artoo.world.mounts import MountTable
from artoo.world.process import Ended
from artoo.world.readonly import ReadOnlyFirst
from artoo.world.runner import Over
from artoo.world.stage import Layer, Stage, overlay_roots
from artoo.world.unconfined import FOR_REAL, NO_SANDBOX, AskForEverything, ended_for_real
from artoo.world.view_place import ViewKind

_REFUSED: RunStatus = "refused"


@dataclass(slots=True)
class CopyRunner:
    """A Runner over a tier that can lay nothing over the real files."""

    sandbox: ReadOnlyFirst | AskForEverything
    artoo_home: Path
    limits: CopyLimits = field(default_factory=CopyLimits)
    _mirrors: dict[Path, Mirror] = field(default_factory=dict[Path, Mirror])

    @property
    def tier(self) -> TierName:
        return self.sandbox.tier

    @property
    def kind(self) -> ViewKind:
        return ViewKind.COPY

    def roots_to_cover(self, roots: Roots) -> tuple[Path, ...]:
        """See `runner.Runner`."""
        return overlay_roots(replace(roots, home=roots.project), MountTable.read())

    def stage_home(self, needed: int, on_disk: Path) -> Path:
        """See `runner.Runner`."""
        return on_disk

    def prepare(self, request: SandboxRequest, stage: Stage, home: Path) -> PreparedCopies:
        """See `runner.Runner`."""
        return PreparedCopies(self, request, stage, home, self._followed(request, stage, home))

    async def run_over(self, request: SandboxRequest, stage: Stage, home: Path, mirrors: list[Mirror]) -> Over:
        """Runs a command in copies that are as the view is."""
        ways = [(layer.root, mirror.place) for layer, mirror in zip(stage.layers, mirrors, strict=True)]
        try:
            over = await self._run(_moved(request, ways, home / "copy"), tuple(place for _, place in ways))
            if over.ended.limit is None:
                await asyncio.to_thread(_write_changes, stage.layers, mirrors)
        except BaseException:
            self._forget(mirrors)
            raise
        if over.ended.limit not in (None, _REFUSED):
            self._forget(mirrors)
        return replace(over, ended=_told(over.ended, ways))

    async def _run(self, request: SandboxRequest, copies: tuple[Path, ...]) -> Over:
        if isinstance(self.sandbox, ReadOnlyFirst):
            return await self.sandbox.run_in_copies(request, copies)
        if request.read_only:
            raise SandboxError(
                "a read-only run needs a sandbox, and none works on this machine; `artoo doctor` says why"
            )
        if not request.unconfined:
            return Over(Ended(0, Captured(), Captured(), 0.0, _REFUSED), (NO_SANDBOX,), ask=True)
        return Over(await ended_for_real(request), (FOR_REAL,))

    def _followed(self, request: SandboxRequest, stage: Stage, home: Path) -> list[Mirror]:
        """The copies, equal to what the view shows."""
        hidden = frozenset(map(os.fsencode, closed_paths(request.roots, self.artoo_home, request.hide)))
        try:
            return [
                self._follow(layer, home / "copy" / LAYER_TREES[number], hidden)
                for number, layer in enumerate(stage.layers)
            ]
        except OSError as error:
            raise SandboxError(f"the project cannot be copied: {error.strerror}; free space") from error

    def _follow(self, layer: Layer, place: Path, hidden: frozenset[bytes]) -> Mirror:
        mirror = self._mirrors.get(place)
        if mirror is None:
            mirror = self._mirrors[place] = Mirror(place, hidden.__contains__, self.limits)
        try:
            mirror.follow(layer)
        except BaseException:
            self._forget([mirror])
            raise
        return mirror

    def _forget(self, mirrors: list[Mirror]) -> None:
        """What is in these copies is not known any more: the next command gets fresh ones."""
        for mirror in mirrors:
            self._mirrors.pop(mirror.place, None)


@dataclass(frozen=True, slots=True)
class PreparedCopies:
    """A command, and the copies in which it works."""

    runner: CopyRunner
    request: SandboxRequest
    stage: Stage
    home: Path
    mirrors: list[Mirror]

    async def run(self) -> Over:
        """See `runner.Prepared`."""
        return await self.runner.run_over(self.request, self.stage, self.home, self.mirrors)

    def discard(self) -> None:
        """See `runner.Prepared`. The copies are what the view shows, and stay."""


def _write_changes(layers: tuple[Layer, ...], mirrors: list[Mirror]) -> None:
    try:
        for layer, mirror in zip(layers, mirrors, strict=True):
            mirror.write_changes(layer)
    except OSError as error:
        raise SandboxError(
            f"what the command did cannot be kept: {error.strerror}; nothing of it is in the view: free space"
        ) from error


def _moved(request: SandboxRequest, ways: list[tuple[Path, Path]], home: Path) -> SandboxRequest:
    """The request as it is to be run: its paths are the copies'."""

    def moved(path: Path) -> Path:
        for root, place in ways:
            if path.is_relative_to(root):
                return place / path.relative_to(root)
        return path

    def named(text: str) -> str:
        for root, place in ways:
            text = text.replace(f"{root}/", f"{place}/")
            text = str(place) if text == str(root) else text
        return text

    roots = request.roots
    inside = Roots(
        roots.home,
        moved(roots.workspace.resolve()),
        moved(roots.project.resolve()),
        layer=home,
        opened=roots.opened,
    )
    return replace(
        request,
        argv=tuple(map(named, request.argv)),
        cwd=moved(request.cwd.resolve()),
        env={name: named(value) for name, value in request.env.items()},
        roots=inside,
    )


def _told(ended: Ended, ways: list[tuple[Path, Path]]) -> Ended:
    """Output with the paths that the person knows."""

    def real(captured: Captured) -> Captured:
        head, tail = captured.head, captured.tail
        for root, place in ways:
            old, new = os.fsencode(place), os.fsencode(root)
            head, tail = head.replace(old, new), tail.replace(old, new)
        lost = captured.total_bytes - len(captured.head) - len(captured.tail)
        return Captured(head, tail, len(head) + len(tail) + lost)

    return replace(ended, stdout=real(ended.stdout), stderr=real(ended.stderr))
