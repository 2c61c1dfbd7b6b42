"""Tier *none*: no containment works here, so every command needs a yes, and then runs for real."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import SandboxRequest, TierName, ViewRun
from artoo.world.environment import cleaned
from artoo.world.group import launched, plain_plan
from artoo.world.limits import limited
from artoo.world.process import Confined, Ended, run_confined
from artoo.world.process_group import led

FOR_REAL = "ran without a sandbox, after a confirmation"
NO_SANDBOX = "no sandbox works on this machine: the command needs a confirmation"


class AskForEverything:
    """Runs nothing that was not confirmed. A look is refused: nothing here can hold it to that."""

    def __init__(self, artoo_home: Path) -> None:
        self._artoo_home = artoo_home

    @property
    def tier(self) -> TierName:
        return "none"

    async def look(self, request: SandboxRequest) -> ViewRun:
        """Raises SandboxError."""
        raise SandboxError(
            "a read-only run needs a sandbox, and none works on this machine; `artoo doctor` says why"
        )


async def ended_for_real(request: SandboxRequest) -> Ended:
    """Runs a confirmed command with the user's own rights: bounded, its environment cleaned, not contained."""
    env = cleaned(os.environ, request)
    for name in ("TMPDIR", "XDG_CACHE_HOME"):
        env.pop(name, None)
    with _supervised(request, env) as program:
        return await run_confined(program, request.limits, request.stdin, request.printed)


@contextmanager
def _supervised(request: SandboxRequest, env: dict[str, str]) -> Generator[Confined]:
    if sys.platform.startswith("linux"):
        with launched(plain_plan(request, env), request.limits) as (program, _):
            yield program
    else:
        with led(limited(request.argv, request.limits, among_others=True), env, request.cwd) as program:
            yield program
