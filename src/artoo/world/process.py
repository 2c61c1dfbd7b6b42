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
    end: Callable[[asyncio.subprocess.Process], None]
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

    def __init__(self, process: asyncio.subprocess.Process, end: Callable[[asyncio.subprocess.Process], None]):
        self.reason: RunStatus | None = None
        self._process = process
        self._end = end

    def stop(self, reason: RunStatus) -> None:
        if self.reason is None and self._process.returncode is None:
            self.reason = reason
            self._end(self._process)


@dataclass(frozen=True, slots=True)
class _Started:
    """A program that runs. Its output comes by pipes of our own: whether `wait` waits for asyncio's depends on
    Python's version, and what the program left behind may hold them.
    """

    process: asyncio.subprocess.Process
    out: Pipe
    err: Pipe

    def close(self) -> None:
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

    def end(process: asyncio.subprocess.Process) -> None:
        group.kill()
        program.end(process)

    return replace(program, argv=group.joining(program.argv), end=end)


async def _run(
    program: Confined, limits: Limits, stdin: bytes | None, printed: Heard, group: Group | None
) -> Ended:
    started = time.monotonic()
    running = await _started(program, stdin)
    process = running.process
    program.started(process.pid)
    stopper = _Stopper(process, program.end)
    out, err = Capture(limits.kept_bytes), Capture(limits.kept_bytes)
    budget = OutputBudget(limits.output_bytes, lambda: stopper.stop("output_limit"))
    try:
        async with asyncio.TaskGroup() as tasks:
            streams = ((running.out, out), (running.err, err))
            reading = [tasks.create_task(read_all(each.reader, into, budget, printed)) for each, into in streams]
            feeding = tasks.create_task(_feed(process, stdin))
            watching = tasks.create_task(program.watch(group, stopper.stop))
            await _wait(process, stopper, limits.wall_seconds)
            program.ended(process.pid)
            watching.cancel()
            feeding.cancel()
            await _last_words(reading)
    finally:
        try:
            if process.returncode is None:
                program.end(process)
                await _gone(process)
        finally:
            running.close()
    assert process.returncode is not None
    return Ended(process.returncode, out.result(), err.result(), time.monotonic() - started, stopper.reason)


async def _started(program: Confined, stdin: bytes | None) -> _Started:
    """A cancelled start is awaited and ended whole: asyncio would kill the program alone, and not what it began."""
    starting = asyncio.create_task(_start(program, stdin))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        running = await starting
        program.end(running.process)
        await _gone(running.process)
        running.close()
        raise


async def _start(program: Confined, stdin: bytes | None) -> _Started:
    with ExitStack() as unless_started:
        try:
            out = await Pipe.opened()
            unless_started.callback(out.close)
            err = await Pipe.opened()
            unless_started.callback(err.close)
            process = await asyncio.create_subprocess_exec(
                *program.argv,
                stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
                stdout=out.write,
                stderr=err.write,
                env=dict(program.env),
                cwd=program.cwd,
                pass_fds=program.pass_fds,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise SandboxError(f"cannot start the sandbox ({program.argv[0]}): {error}") from error
        unless_started.pop_all()
    out.hand_over()
    err.hand_over()
    return _Started(process, out, err)


async def _wait(process: asyncio.subprocess.Process, stopper: _Stopper, wall_seconds: float) -> None:
    if await _ends_within(process, wall_seconds):
        return
    stopper.stop("timeout")
    if not await _ends_within(process, _GRACE_SECONDS):
        process.kill()
        await _gone(process)


async def _gone(process: asyncio.subprocess.Process) -> None:
    """Waits for the end of a program that has been killed: whoever else holds its input need not read it."""
    if process.stdin is not None:
        process.stdin.transport.abort()
    await process.wait()


async def _last_words(reading: Sequence[asyncio.Task[None]]) -> None:
    """Until all is read. A machine that stands still for a while uses up one look, and not all."""
    for _ in range(_LOOKS):
        _, left = await asyncio.wait(reading, timeout=_LAST_WORDS_SECONDS / _LOOKS)
        if not left:
            return
    for each in reading:
        each.cancel()


async def _ends_within(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Not by `asyncio.wait_for`: before Python 3.12 it forgets to be cancelled when that comes with the end."""
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        return False
    return True


async def _feed(process: asyncio.subprocess.Process, data: bytes | None) -> None:
    if data is None or process.stdin is None:
        return
    try:
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        return


def kill_quietly(pid: int) -> None:
    """SIGKILL to a process that may be gone already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
