"""Tier *none*: no containment works here, so every command needs a yes, and then runs for real."""

from __future__ import annotations

import os
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Captured, SandboxRequest, SandboxRun, StagedChanges, TierName
from artoo.world.environment import cleaned
from artoo.world.group import launched, plain_plan
from artoo.world.process import Ended, run_confined
from artoo.world.staged import NoChanges
from artoo.world.writes import stage_write

FOR_REAL = "ran without a sandbox, after a confirmation"
NO_SANDBOX = "no sandbox works on this machine: the command needs a confirmation"


class AskForEverything:
    """Runs nothing that was not confirmed. A read-only request is refused: nothing here can hold it to that."""

    def __init__(self, artoo_home: Path) -> None:
        self._artoo_home = artoo_home

    @property
    def tier(self) -> TierName:
        return "none"

    async def run(self, request: SandboxRequest) -> SandboxRun:
        if request.read_only:
            raise SandboxError(
                "a read-only run needs a sandbox, and none works on this machine; `artoo doctor` says why"
            )
        if not request.unconfined:
            return refused("none", NO_SANDBOX)
        return await run_for_real(request, "none")

    async def stage_write(self, request: SandboxRequest, path: Path, content: bytes) -> StagedChanges:
        return await stage_write(request, path, content, self._artoo_home)


def refused(tier: TierName, note: str) -> SandboxRun:
    """The run that did not take place."""
    return SandboxRun(
        tier=tier,
        status="refused",
        exit_code=None,
        stdout=Captured(),
        stderr=Captured(),
        duration_seconds=0.0,
        staged=NoChanges(),
        needs_confirmation=True,
        notes=(note,),
    )


async def run_for_real(request: SandboxRequest, tier: TierName) -> SandboxRun:
    """`ended_for_real`, as a run."""
    return real_result(tier, await ended_for_real(request), (FOR_REAL,))


async def ended_for_real(request: SandboxRequest) -> Ended:
    """Runs a confirmed command with the user's own rights: bounded, its environment cleaned, not contained."""
    env = cleaned(os.environ, request)
    for name in ("TMPDIR", "XDG_CACHE_HOME"):
        env.pop(name, None)
    with launched(plain_plan(request, env), request.limits) as (program, _):
        return await run_confined(program, request.limits, request.stdin)


def real_result(tier: TierName, ended: Ended, notes: tuple[str, ...], *, ask: bool = False) -> SandboxRun:
    """A result without staged changes."""
    return SandboxRun(
        tier=tier,
        status=ended.limit or ("ok" if ended.exit_code == 0 else "error"),
        exit_code=ended.exit_code if ended.limit is None else None,
        stdout=ended.stdout,
        stderr=ended.stderr,
        duration_seconds=ended.duration_seconds,
        staged=NoChanges(),
        needs_confirmation=ask,
        notes=notes,
    )
