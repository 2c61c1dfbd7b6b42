"""Runs one confined program: bounded in time, output, processes, memory and disk, and ended as a whole."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
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


Command = tuple[Sequence[str], Mapping[str, str]]
"""Words, and all variables."""


@dataclass(frozen=True, slots=True)
class Confined:
    """A program ready to start.

    `end` asks for the death of every process of it, `watch` looks for excesses until it is cancelled, `started`
    is told the pid, and `ended` the same when the program is gone: what it left may hold its output. `writes`: the
    directories that count for its disk limit. `door` is the way to its network, when it has one. With `tell` it
    waits until it is told which command it is to run; else it knows.
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
    tell: Callable[[Sequence[str], Mapping[str, str]], None] | None = None
    command: Command = ((), {})


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
    async with begun(program, limits, fed=stdin is not None) as running:
        return await running.run(program.command, stdin, printed)


@asynccontextmanager
async def begun(program: Confined, limits: Limits, *, fed: bool = False) -> AsyncGenerator[Begun]:
    """`program`, started, perhaps before anybody knows what it will run. At the end nothing of it lives.

    `fed`: it will be given its input. Raises SandboxError when it cannot be started.
    """
    async with grouped(limits, program.writes) as group:
        held = program if group is None else _in_group(program, group)
        running = await _start(held, fed)
        try:
            held.started(running.process.pid)
            yield Begun(held, limits, group, running)
        finally:
            try:
                if running.process.returncode is None:
                    held.end(running.process)
                    await running.process.wait()
            finally:
                running.close()


def _in_group(program: Confined, group: Group) -> Confined:
    """`program` as the kernel holds it: started in its group, ended by the kernel."""

    def end(process: Child) -> None:
        group.kill()
        program.end(process)

    return replace(program, argv=group.joining(program.argv), end=end)


@dataclass(frozen=True, slots=True)
class Begun:
    """A program that was started and nobody has waited for yet."""

    _program: Confined
    _limits: Limits
    _group: Group | None
    _running: _Started

    @property
    def lives(self) -> bool:
        """Whether its end was not noticed."""
        return self._running.process.returncode is None

    async def run(self, command: Command, stdin: bytes | None, printed: Heard) -> Ended:
        """Its run, from the moment at which it knows what. To be called once. Raises SandboxError."""
        program, limits, process = self._program, self._limits, self._running.process
        started = time.monotonic()
        stopper = _Stopper(process, program.end)
        out, err = Capture(limits.kept_bytes), Capture(limits.kept_bytes)
        budget = OutputBudget(limits.output_bytes, lambda: stopper.stop("output_limit"))
        if program.tell is not None:
            program.tell(*command)
        async with asyncio.TaskGroup() as tasks:
            streams = ((self._running.out, out), (self._running.err, err))
            reading = [tasks.create_task(read_all(each.reader, into, budget, printed)) for each, into in streams]
            feeding = None if stdin is None else tasks.create_task(process.feed(stdin))
            watching = tasks.create_task(program.watch(self._group, stopper.stop))
            await _wait(process, stopper, limits.wall_seconds)
            program.ended(process.pid)
            watching.cancel()
            if feeding is not None:
                feeding.cancel()
            await _last_words(reading)
        assert process.returncode is not None
        limit = stopper.reason or (None if self._group is None else self._group.hit())
        return Ended(process.returncode, out.result(), err.result(), time.monotonic() - started, limit)


async def _start(program: Confined, fed: bool) -> _Started:
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
                fed=fed,
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
