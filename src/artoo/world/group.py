"""Starts `launcher.py`: the tiers that do not use bubblewrap."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from artoo.ports.sandbox import Limits, RunStatus, SandboxRequest
from artoo.world.cgroup import Group
from artoo.world.child import Child
from artoo.world.limits import limited
from artoo.world.process import Confined, kill_quietly
from artoo.world.process_tree import descendants
from artoo.world.status import StatusPipe
from artoo.world.watch import room, watch_tree

_LAUNCHER = Path(__file__).with_name("launcher.py")


@dataclass(frozen=True, slots=True)
class LaunchLayer:
    """One overlay: what is below, the two directories above it, the frozen layers in between, topmost first.

    `inside`: one of these lies in the root (`stage.Layer.footing`).
    """

    root: str
    upper: str
    work: str
    below: tuple[str, ...] = ()
    inside: bool = False


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """What `launcher.py` is told. Paths are text with surrogate escapes, as Python's os functions take them.

    `door` is the UNIX socket through which it sends a listening one of the command's network (None: no network).
    """

    mode: str
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    filter: str = ""
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    layers: tuple[LaunchLayer, ...] = ()
    bound: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    scratch: str = ""
    empty: str = ""
    shared_memory: int = 0
    door: int | None = None


def plain_plan(request: SandboxRequest, env: dict[str, str]) -> LaunchPlan:
    """A plan that only supervises: the command has the user's own rights."""
    return LaunchPlan("plain", limited(request.argv, request.limits, among_others=True), env, str(request.cwd))


@contextmanager
def launched(
    plan: LaunchPlan, limits: Limits, watched: tuple[Path, ...] = ()
) -> Generator[tuple[Confined, StatusPipe], None, None]:
    """The program that carries out `plan`. Closes its descriptors at the end."""
    status = StatusPipe()
    config = os.memfd_create("artoo-plan")
    try:
        os.write(config, json.dumps(asdict(plan)).encode())
        os.lseek(config, 0, os.SEEK_SET)
        before = room(watched)

        async def watch(group: Group | None, stop: Callable[[RunStatus], None]) -> None:
            await watch_tree(status.leader, watched, limits, before, group, stop)

        def end(process: Child) -> None:
            for pid in descendants(process.pid):
                kill_quietly(pid)
            with suppress(ProcessLookupError):  # it ends what it has started since that look, and itself
                process.send_signal(signal.SIGTERM)

        argv = (sys.executable, "-I", "-S", str(_LAUNCHER), str(config), str(status.write))
        yield Confined(argv, plan.env, Path("/"), (config, status.write), end, watch, writes=watched), status
    finally:
        os.close(config)
        status.close()
