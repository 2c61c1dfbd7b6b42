"""A program that makes the first process of a sandbox and says which it is: by that one it is watched and ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from artoo.ports.sandbox import RunStatus
from artoo.world.cgroup import Group
from artoo.world.child import Child
from artoo.world.edge.doors import Door
from artoo.world.entry import Tell
from artoo.world.overlay import View
from artoo.world.process import Confined, kill_quietly
from artoo.world.process_tree import descendants
from artoo.world.status import StatusPipe, parent_of, stands
from artoo.world.watch import Room, room, watch_tree

_STOP_SECONDS = 0.2
"""The longest wait for a stopped program to stand still; it takes microseconds where a processor is free."""


def led(
    status: StatusPipe,
    program: tuple[tuple[str, ...], Mapping[str, str]],
    given: tuple[int, ...],
    view: View,
    door: Door | None,
    tell: Tell,
) -> Confined:
    """The program (words and variables), ready to start. `given`: descriptors that it inherits; `tell`: how it is
    told what to run."""
    request, stage = view.request, view.stage
    watched = (*(layer.upper for layer in stage.layers), request.scratch or stage.scratch)
    before = Room(0, 0, 0)

    def told(argv: Sequence[str], env: Mapping[str, str]) -> None:
        nonlocal before
        before = room(watched)  # what others take while it waits is not the command's
        tell(argv, env)

    async def watch(group: Group | None, stop: Callable[[RunStatus], None]) -> None:
        await watch_tree(status.leader, watched, request.limits, before, group, stop)

    def end(process: Child) -> None:
        leader = status.leader()
        if leader is not None and parent_of(leader) == process.pid:
            kill_quietly(leader)
        else:
            _end_early(process)

    argv, env = program
    return Confined(argv, env, Path("/"), given, end, watch, writes=watched, door=door, tell=told)


def _end_early(process: Child) -> None:
    """Ends a program that has not said yet which process is the first of its own.

    That one may be there already and not have asked to die with its parent: it would live for ever. A stopped
    parent makes no further ones, once it stands: until then it may be in the middle of making one.
    """
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGSTOP)
    until = time.monotonic() + _STOP_SECONDS
    while not stands(process.pid) and time.monotonic() < until:
        time.sleep(0.001)
    for child in descendants(process.pid):
        kill_quietly(child)
    with suppress(ProcessLookupError):
        process.kill()
