"""Runs one confined program: bounded in time, output, processes, memory and disk, and ended as a whole."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.printing import Heard, unheard
from artoo.ports.sandbox import Captured, Limits, RunStatus
from artoo.world.capture import Capture, OutputBudget, Pipe, read_all
from artoo.world.cgroup import Group, grouped
from artoo.world.child import Child
from artoo.world.edge.doors import Door

_GRACE_SECONDS = 5.0
_LAST_WORDS_SECONDS, _LOOKS = 1.0, 10
"""For what a program that is gone has written: somebody else may hold its output for as long as it likes."""


@dataclass(frozen=True, slots=True)
class Confined:
    """A program ready to start.

    `end` asks for the death of every process of it, `watch` looks for excesses until it is cancelled, `started`
    is told the pid, and `ended` the same when the program is gone: what it left may hold its output. `writes`: the
    directories that count for its disk limit. `door` is the way to its network, when it has one.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    pass_fds: tuple[int, ...]
    end: Callable[[Child], None]
    watch: Callable[[Group | None, Callable[[RunStatus], None]], Coroutine[None, None, None]]
    started: Callable[[int], object] = bool
    ended: Callable[[int], object] = bool
    writes: tuple[Path, ...] = ()
    door: Door | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a confined program ended. `limit` is set when it was ended from outside."""

    exit_code: int
    stdout: Captured
    stderr: Captured
    duration_seconds: float
    limit: RunStatus | None


class _Stopper:
    """Ends the program at most once, for the first reason given."""

    def __init__(self, process: Child, end: Callable[[Child], None]):
        self.reason: RunStatus | None = None
        self._process = process
        self._end = end

    def stop(self, reason: RunStatus) -> None:
        if self.reason is None and self._process.returncode is None:
            self.reason = reason
            self._end(self._process)


@dataclass(frozen=True, slots=True)
class _Started:
    """A program that runs, and the pipes of its output, which what it left behind may hold."""

    process: Child
    out: Pipe
    err: Pipe

    def close(self) -> None:
        self.process.close()
        self.out.close()
        self.err.close()


async def run_confined(program: Confined, limits: Limits, stdin: bytes | None, printed: Heard = unheard) -> Ended:
    """Runs `program` to its end. Cancelling ends it first. Raises SandboxError when it cannot be started.

    `printed` is told of what it writes.
    """
    async with grouped(limits, program.writes) as group:
        if group is None:
            return await _run(program, limits, stdin, printed, None)
        ended = await _run(_in_group(program, group), limits, stdin, printed, group)
        return replace(ended, limit=ended.limit or group.hit())


def _in_group(program: Confined, group: Group) -> Confined:
    """`program` as the kernel holds it: started in its group, ended by the kernel."""

    def end(process: Child) -> None:
        group.kill()
        program.end(process)

    return replace(program, argv=group.joining(program.argv), end=end)


async def _run(
    program: Confined, limits: Limits, stdin: bytes | None, printed: Heard, group: Group | None
) -> Ended:
    started = time.monotonic()
    running = await _start(program, stdin)
    process = running.process
    program.started(process.pid)
    stopper = _Stopper(process, program.end)
    out, err = Capture(limits.kept_bytes), Capture(limits.kept_bytes)
    budget = OutputBudget(limits.output_bytes, lambda: stopper.stop("output_limit"))
    try:
        async with asyncio.TaskGroup() as tasks:
            streams = ((running.out, out), (running.err, err))
            reading = [tasks.create_task(read_all(each.reader, into, budget, printed)) for each, into in streams]
            feeding = None if stdin is None else tasks.create_task(process.feed(stdin))
            watching = tasks.create_task(program.watch(group, stopper.stop))
            await _wait(process, stopper, limits.wall_seconds)
            program.ended(process.pid)
            watching.cancel()
            if feeding is not None:
                feeding.cancel()
            await _last_words(reading)
    finally:
        try:
            if process.returncode is None:
                program.end(process)
                await process.wait()
        finally:
            running.close()
    assert process.returncode is not None
    return Ended(process.returncode, out.result(), err.result(), time.monotonic() - started, stopper.reason)


async def _start(program: Confined, stdin: bytes | None) -> _Started:
    with ExitStack() as unless_started:
        try:
            out = await Pipe.opened()
            unless_started.callback(out.close)
            err = await Pipe.opened()
            unless_started.callback(err.close)
            child = Child.started(
                program.argv,
                program.env,
                program.cwd,
                program.pass_fds,
                fed=stdin is not None,
                out=out.write,
                err=err.write,
            )
        except (OSError, ValueError) as error:
            raise SandboxError(f"cannot start the sandbox ({program.argv[0]}): {error}") from error
        unless_started.pop_all()
    out.hand_over()
    err.hand_over()
    return _Started(child, out, err)


async def _wait(process: Child, stopper: _Stopper, wall_seconds: float) -> None:
    if await _ends_within(process, wall_seconds):
        return
    stopper.stop("timeout")
    if not await _ends_within(process, _GRACE_SECONDS):
        process.kill()
        await process.wait()


async def _last_words(reading: Sequence[asyncio.Task[None]]) -> None:
    """Until all is read. A machine that stands still for a while uses up one look, and not all."""
    for _ in range(_LOOKS):
        _, left = await asyncio.wait(reading, timeout=_LAST_WORDS_SECONDS / _LOOKS)
        if not left:
            return
    for each in reading:
        each.cancel()


async def _ends_within(process: Child, seconds: float) -> bool:
    """Not by `asyncio.wait_for`: before Python 3.12 it forgets to be cancelled when that comes with the end."""
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        return False
    return True


def kill_quietly(pid: int) -> None:
    """SIGKILL to a process that may be gone already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
