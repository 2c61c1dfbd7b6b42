"""Sandboxes that are made before anybody knows their command, and wait for it.

    laid from what is there ──► started, isolated, waits ──► would it be laid so now? ──► told its command, and run
                                                                     └──► no: dismissed, and one is made as ever

Between two commands of a task a model thinks for seconds, in which the next sandbox can be made. Nothing may be
stale in it: what it was laid from is looked up again when its command comes, with the identity of every place that
is laid over another, so that a closed file which was replaced meanwhile is another one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path

from artoo.ports.sandbox import Limits, SandboxRequest
from artoo.world.mounts import MountTable
from artoo.world.overlay import Found, OverlaySandbox, SetupReport, over
from artoo.world.process import Begun, Command, Confined, begun
from artoo.world.runner import Over
from artoo.world.stage import Stage
from artoo.world.threads import or_undone


@dataclass(frozen=True, slots=True)
class Laid:
    """What a sandbox is laid from: two that are equal are laid in the same way."""

    limits: Limits
    cwd: Path
    hidden: tuple[str, ...]
    bound: tuple[str, ...]
    missed: tuple[str, ...]
    mounts: MountTable
    nodes: tuple[tuple[int, ...] | None, ...]
    """Which node it is, with mode and owner, of whatever is covered, shown or laid over; None where nothing is."""

    @classmethod
    def of(cls, found: Found) -> Laid:
        """As everything is now. Blocking."""
        view, request = found.view, found.view.request
        roots = (place for layer in view.stage.layers for place in (layer.root, *layer.below))
        nodes = tuple(map(_node, (*view.hidden, *view.bound, *roots, request.cwd)))
        return cls(request.limits, request.cwd, view.hidden, view.bound, found.missed, found.mounts, nodes)


def _node(path: str | Path) -> tuple[int, ...] | None:
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    return seen.st_dev, seen.st_ino, seen.st_mode, seen.st_uid, seen.st_gid


@dataclass(frozen=True, slots=True)
class AheadOverlay:
    """A `runner.Ahead` over a sandbox whose programs wait to be told their command."""

    sandbox: OverlaySandbox

    async def stand_by(self, request: SandboxRequest, stage: Stage) -> StandingOverlay:
        """See `runner.Ahead`."""
        prepared = await or_undone(lambda: self._prepared(request, stage), lambda prepared: prepared.close())
        async with AsyncExitStack() as opened:
            opened.callback(prepared.close)
            running = await opened.enter_async_context(begun(prepared.program, request.limits))
            return StandingOverlay(self.sandbox, stage, prepared.laid, prepared.report, running, opened.pop_all())

    def _prepared(self, request: SandboxRequest, stage: Stage) -> _Prepared:
        found = self.sandbox.found(request, stage)
        laid = Laid.of(found)  # before it is laid: what changes while it is laid has changed
        opened = ExitStack()
        return _Prepared(laid, *opened.enter_context(self.sandbox.driver(found.view)), opened.close)


@dataclass(frozen=True, slots=True)
class _Prepared:
    laid: Laid
    program: Confined
    report: SetupReport
    close: Callable[[], None]


@dataclass(frozen=True, slots=True)
class StandingOverlay:
    """See `runner.Standing`."""

    _sandbox: OverlaySandbox
    _stage: Stage
    _laid: Laid
    _report: SetupReport
    _running: Begun
    _opened: AsyncExitStack

    def told(self, request: SandboxRequest) -> _Told | None:
        """See `runner.Standing`."""
        if request.hosts or request.stdin is not None or not self._running.lives:
            return None
        found = self._sandbox.found(request, self._stage)
        return _Told(self, request, found.command) if Laid.of(found) == self._laid else None

    async def run(self, request: SandboxRequest, command: Command) -> Over:
        """Runs the command of a request that fits."""
        async with self._opened:
            ended = await self._running.run(command, None, request.printed)
            return over(ended, self._report, self._laid.missed)

    async def dismiss(self) -> None:
        """See `runner.Standing`."""
        await self._opened.aclose()


@dataclass(frozen=True, slots=True)
class _Told:
    """A command in a sandbox that stood by."""

    standing: StandingOverlay
    request: SandboxRequest
    command: Command

    async def run(self) -> Over:
        """See `runner.Command`."""
        return await self.standing.run(self.request, self.command)
