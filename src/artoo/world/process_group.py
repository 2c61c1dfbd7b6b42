"""A program that is held by its process group alone: where there is no `/proc` to look for its processes (macOS).

What leaves the group outlives it, and nobody counts what it takes; time, output and the shell's limits hold.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from artoo.ports.sandbox import RunStatus
from artoo.world.cgroup import Group
from artoo.world.child import Child
from artoo.world.process import Confined


@contextmanager
def led(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> Generator[Confined]:
    """The program, ready to start. When it ends, what it left in its group ends too."""
    leader: list[int] = []

    async def watch(group: Group | None, stop: Callable[[RunStatus], None]) -> None:
        """Nothing can be counted here."""

    def end(process: Child) -> None:
        _end_group(process.pid)

    try:
        yield Confined(argv, env, cwd, (), end, watch, leader.append, _end_group)
    finally:
        for pid in leader:
            _end_group(pid)


def _end_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # empty, or only zombies left
        return
