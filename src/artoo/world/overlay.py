"""Runs commands against a copy-on-write view and reads what they did: the tiers that stage changes."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from artoo.contracts.changes import Change, printable_path
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots, RunStatus, SandboxRequest, TierName, ViewRun
from artoo.world.classify import Places
from artoo.world.closed import closed_paths
from artoo.world.describe import describe
from artoo.world.edge.environment import network_environment
from artoo.world.edge.running import run_with_network
from artoo.world.environment import cleaned
from artoo.world.mounts import MountTable, inner_mounts
from artoo.world.open_settings import lay_git_extract
from artoo.world.path_set import PathSet, outermost
from artoo.world.process import Command, Confined, Ended
from artoo.world.runner import Over, run_of
from artoo.world.scan import scan
from artoo.world.stage import Stage, choose_stage_home, make_stage, memory_stage_home, overlay_roots
from artoo.world.threads import or_undone
from artoo.world.view_place import ViewKind

PRIVATE_PLACES = ("/tmp", "/var/tmp", "/run", "/dev/shm")
"""Directories of which a command sees its own, empty ones."""
_PRIVATE = PathSet(PRIVATE_PLACES)

LIMIT_WORDS: Mapping[RunStatus, str] = {
    "timeout": "the time limit was reached",
    "output_limit": "more output than the limit",
    "process_limit": "more processes than the limit",
    "memory_limit": "more memory than the limit",
    "disk_limit": "more data written than the limit",
}


class SetupReport(Protocol):
    """How a driver's own part of a run went."""

    def command_started(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class View:
    """Everything that a driver needs to confine one request.

    `hidden` must be out of reach; `bound` is to be shown as it is, read-only: what is mounted inside a root, and
    roots that could not be laid under an overlay.
    """

    request: SandboxRequest
    stage: Stage
    env: dict[str, str]
    hidden: tuple[str, ...]
    bound: tuple[str, ...]


Driver = Callable[[View], AbstractContextManager[tuple[Confined, SetupReport]]]


@dataclass(frozen=True, slots=True)
class Found:
    """What a command finds. `missed`: roots that could not be laid under an overlay; `mounts`: the machine's."""

    view: View
    missed: tuple[str, ...]
    mounts: MountTable

    @property
    def command(self) -> Command:
        """What is to be run in it."""
        request = self.view.request
        return request.argv, {**self.view.env, "PWD": str(request.cwd)}


@dataclass(frozen=True, slots=True)
class PreparedOver:
    """A command that only has to be started. `missed`: see `Found`."""

    request: SandboxRequest
    program: Confined
    report: SetupReport
    missed: tuple[str, ...]
    opened: ExitStack

    async def run(self) -> Over:
        """See `runner.Prepared`."""
        with self.opened:
            ended = await run_with_network(self.program, self.request)
            return over(ended, self.report, self.missed)

    def discard(self) -> None:
        """See `runner.Prepared`."""
        self.opened.close()


class OverlaySandbox:
    """A Sandbox over a driver that mounts overlays.

    `artoo_home` holds the journals and is hidden from commands. `stage_homes` are file systems that can carry an
    upper layer, best first; one in memory is used only while there is room for the whole run. `over_mounts`:
    the driver can lay an overlay over a directory in which other file systems are mounted. `waits`: what it starts
    waits until it is told its command.
    """

    def __init__(
        self,
        tier: TierName,
        driver: Driver,
        artoo_home: Path,
        stage_homes: tuple[Path, ...],
        *,
        over_mounts: bool,
        waits: bool = False,
    ) -> None:
        self._tier: TierName = tier
        self.driver = driver
        self._artoo_home = artoo_home
        self._stage_homes = stage_homes
        self._over_mounts = over_mounts
        self.waits = waits

    @property
    def tier(self) -> TierName:
        return self._tier

    @property
    def kind(self) -> ViewKind:
        return ViewKind.OVERLAY

    async def look(self, request: SandboxRequest) -> ViewRun:
        """See `ports.sandbox.Sandbox`."""
        stage = await asyncio.to_thread(self._staged, request)
        try:
            command = await or_undone(lambda: self.prepare(request, stage, stage.base), PreparedOver.discard)
            over = await command.run()
            dropped = over.ended.limit is not None
            changes = () if dropped else await asyncio.to_thread(self._changes, request, stage)
        finally:
            await asyncio.to_thread(stage.discard)
        return run_of(self._tier, over, changes)

    def prepare(self, request: SandboxRequest, stage: Stage, home: Path) -> PreparedOver:
        """See `runner.Runner`."""
        found = self.found(request, stage)
        opened = ExitStack()
        program, report = opened.enter_context(self.driver(found.view))
        return PreparedOver(request, replace(program, command=found.command), report, found.missed, opened)

    def found(self, request: SandboxRequest, stage: Stage) -> Found:
        """How a command is to be confined, by all that is there now. Blocking."""
        mounts = MountTable.read()
        missed = tuple(_missed_roots(request, stage))
        roots = tuple(layer.root for layer in stage.layers)
        hidden = closed_paths(request.roots, self._artoo_home, (*self._stage_homes, *request.hide), mounts)
        env = cleaned(os.environ, request)
        env |= lay_git_extract(request.roots, request.scratch or stage.scratch, "/tmp")
        env |= network_environment(request.hosts, request.roots.home)
        bound = (*_interpreter(roots), *missed, *inner_mounts(roots, mounts))
        visible = _visible(hidden, (*map(str, roots), *bound))
        return Found(View(request, stage, env, visible, bound), missed, mounts)

    def roots_to_cover(self, roots: Roots) -> tuple[Path, ...]:
        """The real directories over which this tier can lay a view."""
        return overlay_roots(roots, MountTable.read(), over_mounts=self._over_mounts)

    def stage_home(self, needed: int, on_disk: Path) -> Path:
        """Where a command's own layer is to lie: in memory while that is proved and has room, else `on_disk`."""
        chosen = choose_stage_home(self._stage_homes, needed)
        return chosen if chosen == memory_stage_home() else on_disk

    def _staged(self, request: SandboxRequest) -> Stage:
        home = choose_stage_home(self._stage_homes, request.limits.disk_bytes)
        return make_stage(home, uuid.uuid4().hex, self.roots_to_cover(request.roots))

    def _changes(self, request: SandboxRequest, stage: Stage) -> tuple[Change, ...]:
        effects = scan(stage.layers, request.limits.paths)
        return describe(effects, Places.of(request.roots, self._artoo_home))


@lru_cache(maxsize=8)
def _interpreter(roots: tuple[Path, ...]) -> tuple[str, ...]:
    """Where this Python lives, when the private places would cover it: a virtual environment below /tmp."""
    prefixes = dict.fromkeys(Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix))
    covered = [prefix for prefix in prefixes if any(prefix.is_relative_to(place) for place in PRIVATE_PLACES)]
    return tuple(str(prefix) for prefix in covered if not any(prefix.is_relative_to(root) for root in roots))


def over(ended: Ended, report: SetupReport, missed: tuple[str, ...]) -> Over:
    """How a command went. Raises SandboxError when it was never reached."""
    _require_started(ended, report)
    return Over(ended, (*_stopped_by(_status(ended)), *map(_held_read_only, missed)))


def _require_started(ended: Ended, report: SetupReport) -> None:
    if ended.limit is None and not report.command_started():
        raise SandboxError(f"the sandbox could not be set up: {ended.stderr.text.strip()[-500:]}")


def _status(ended: Ended) -> RunStatus:
    if ended.limit is not None:
        return ended.limit
    return "ok" if ended.exit_code == 0 else "error"


def _stopped_by(status: RunStatus) -> list[str]:
    return [f"ended: {LIMIT_WORDS[status]}"] if status in LIMIT_WORDS else []


@lru_cache(maxsize=8)
def _visible(hidden: tuple[str, ...], shown: tuple[str, ...]) -> tuple[str, ...]:
    """Those that a command could see at all; the outermost only, shallow first. `shown`: also in private places."""
    in_shown = PathSet(shown)
    return outermost(path for path in hidden if not _PRIVATE.cover(path) or in_shown.cover(path))


def _held_read_only(missed: str) -> str:
    return f"{printable_path(os.fsencode(missed))} was read-only: other file systems are mounted in it"


def _missed_roots(request: SandboxRequest, stage: Stage) -> list[str]:
    """Roots that could not be laid under an overlay: commands fail to write there, and should know why."""
    roots = (request.roots.home, request.roots.workspace, request.roots.project)
    real = {os.path.realpath(path) for path in roots if os.path.isdir(path)}
    return sorted(path for path in real - {"/"} if stage.layer_of(os.fsencode(path)) is None)
