"""Runs a confined program together with its edge: from before its first instruction until it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Heard, RunStatus, SandboxRequest
from artoo.world.cgroup import Group
from artoo.world.edge.hosts import Permits
from artoo.world.process import Confined, Ended, run_confined


@dataclass(slots=True)
class _Opening:
    """What went wrong on the way to the socket."""

    problem: str = ""


async def run_with_network(program: Confined, request: SandboxRequest) -> Ended:
    """`run_confined`, with a way out to the request's hosts when the program has a door. Raises SandboxError as it
    does, and when the edge cannot be set up."""
    if program.door is None:
        return await run_confined(program, request.limits, request.stdin, request.printed)
    opening = _Opening()
    edged = _with_edge(program, request.hosts, request.heard, opening)
    ended = await run_confined(edged, request.limits, request.stdin, request.printed)
    if opening.problem:
        raise SandboxError(f"the network's edge could not be set up, so nothing was run: {opening.problem}")
    return ended


def _with_edge(program: Confined, hosts: tuple[str, ...], heard: Heard, opening: _Opening) -> Confined:
    door = program.door
    assert door is not None
    from artoo.world.edge.edge import Edge  # with h11: only commands that reach the network pay for it

    edge = Edge(Permits.given(hosts), heard)

    async def watch(group: Group | None, stop: Callable[[RunStatus], None]) -> None:
        try:
            listening = await door.listening()
        except OSError as error:
            opening.problem = str(error) or type(error).__name__
            stop("interrupted")
            return
        with listening:
            door.open()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(program.watch(group, stop))
                tasks.create_task(edge.serve(listening))

    return replace(program, watch=watch, pass_fds=(*program.pass_fds, *door.descriptors))
