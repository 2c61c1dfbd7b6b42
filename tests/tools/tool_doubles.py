"""Stand-ins for what the tools' surroundings provide."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from artoo.contracts.changes import Change, ChangeKind, Node, PathClass, printable_path
from artoo.contracts.errors import SandboxError
from artoo.contracts.execution import ToolCall
from artoo.contracts.settling import ClassifiedChange
from artoo.ports.sandbox import Captured, Roots
from artoo.ports.workspace import BackendName, Command, Ended, Files, Mark, Process, Trial
from artoo.tools.core.registry import SubTaskToolbox
from artoo.workspace.files.rooted import real_files


class StillClock:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass(slots=True, eq=False)
class PlainProcess:
    """A real process without a sandbox. Implements `ports.workspace.Process`, without a terminal."""

    id: str
    argv: tuple[str, ...]
    kept: int
    ended: Ended | None = None
    waits_for_input: bool = False
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    both: bytearray = field(default_factory=bytearray)
    stopped: bool = False
    _child: asyncio.subprocess.Process | None = None
    _following: asyncio.Task[None] | None = None
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    async def begin(self, command: Command, cwd: Path) -> None:
        self._child = await asyncio.create_subprocess_exec(
            *self.argv,
            cwd=cwd,
            stdin=asyncio.subprocess.PIPE if command.interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self._following = asyncio.create_task(self._follow(command.on_output))

    async def _follow(self, heard: Callable[[bytes], None]) -> None:
        assert self._child is not None and self._child.stdout is not None and self._child.stderr is not None

        async def read(stream: asyncio.StreamReader, into: bytearray) -> None:
            while piece := await stream.read(65536):
                into += piece
                self.both += piece
                heard(piece)

        await asyncio.gather(read(self._child.stdout, self.out), read(self._child.stderr, self.err))
        code = await self._child.wait()
        out, err = self.printed
        if self.stopped:
            self.ended = Ended("stopped", None, out, err, 0.0)
        else:
            self.ended = Ended("ok" if code == 0 else "error", code if code >= 0 else 128 - code, out, err, 0.0)
        self._over.set()

    @property
    def printed(self) -> tuple[Captured, Captured]:
        return self._captured(self.out), self._captured(self.err)

    def read(self, offset: int, limit: int) -> tuple[bytes, int]:
        piece = bytes(self.both[offset : offset + limit])
        return piece, offset + len(piece)

    async def background(self) -> tuple[str, ...]:
        return ()

    async def wait(self, seconds: float | None = None) -> Ended | None:
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            return None
        return self.ended

    async def write(self, data: bytes, *, end: bool = False) -> None:
        if self._child is None or self._child.stdin is None:
            raise SandboxError("it takes no input")
        self._child.stdin.write(data)
        await self._child.stdin.drain()

    async def stop(self, grace_seconds: float = 2.0) -> Ended:
        if self.ended is None and self._child is not None:
            self.stopped = True
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
        await self._over.wait()
        assert self.ended is not None
        return self.ended

    def _captured(self, data: bytearray) -> Captured:
        if len(data) <= 2 * self.kept:
            return Captured(bytes(data), b"", len(data))
        return Captured(bytes(data[: self.kept]), bytes(data[-self.kept :]), len(data))


@dataclass(frozen=True, slots=True)
class PlainMark:
    """A state of a PlainWorkspace."""


@dataclass(slots=True)
class PlainWorkspace:
    """Runs commands for real and confines nothing: for tests of what tools make of a command's end.

    `reported` is what every command reports to have changed; a fork is the workspace itself. `refuses`: what is not
    approved to run unconfined is refused.
    """

    roots: Roots
    reported: tuple[Change, ...] = ()
    refuses: bool = False
    backend: BackendName = "bubblewrap"
    commands: list[Command] = field(default_factory=list[Command])
    kept: int = 64 * 1024
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    both_changed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    task_id: str = "task"
    forked: list[str] = field(default_factory=list[str])
    _processes: list[PlainProcess] = field(default_factory=list[PlainProcess])

    @property
    def files(self) -> Files:
        return real_files()

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    @property
    def processes(self) -> tuple[Process, ...]:
        return tuple(self._processes)

    async def start(self, command: Command) -> Process:
        self.commands.append(command)
        process = PlainProcess(f"p{len(self._processes) + 1}", command.argv, self.kept)
        self._processes.append(process)
        if self.refuses and not command.unconfined:
            process.ended = Ended("refused", None, Captured(), Captured(), 0.0)
            process._over.set()  # pyright: ignore[reportPrivateUsage]
            return process
        await process.begin(command, self.roots.project)
        self.begun.set()
        return process

    async def run(self, command: Command, seconds: float) -> Ended:
        process = await self.start(command)
        try:
            return await process.wait(seconds) or await process.stop()
        except asyncio.CancelledError:
            await process.stop()
            raise

    async def try_out(self, command: Command, seconds: float) -> Trial:
        return Trial(await self.run(command, seconds), self.reported)

    async def write(self, path: Path, content: bytes) -> tuple[Change, ...]:
        return written(path, content)

    async def mark(self) -> Mark:
        return PlainMark()

    async def changes_since(self, mark: Mark) -> tuple[Change, ...]:
        return self.reported

    async def refresh(self) -> tuple[str, ...]:
        found, self.both_changed = self.both_changed, ()
        return found

    async def changes(self) -> tuple[Change, ...]:
        return self.reported

    async def classes(self) -> tuple[ClassifiedChange, ...]:
        return ()

    async def fork(self, name: str) -> PlainWorkspace:
        self.forked.append(name)
        return self

    async def discard_fork(self, name: str) -> None:
        return

    async def stop_processes(self) -> tuple[Process, ...]:
        running = [one for one in self._processes if one.ended is None]
        for one in running:
            await one.stop()
        return tuple(running)

    async def close(self) -> None:
        await self.stop_processes()


def written(path: Path, content: bytes) -> tuple[Change, ...]:
    """Writes a file for real; what that changed."""
    before = path.read_bytes() if path.is_file() else None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise SandboxError(f"{error.strerror}") from error
    return () if before == content else (changed(path, before=None if before is None else Node.FILE),)


def changed(path: Path, *, before: Node | None = None) -> Change:
    """The record of a file that was made, or (`before`) replaced."""
    return Change(
        kind=ChangeKind.CREATED if before is None else ChangeKind.OVERWRITTEN,
        path=printable_path(os.fsencode(path)),
        node=Node.FILE,
        before=before,
        path_class=PathClass.PROJECT,
        content_sha256=hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None,
    )


def roots_in(place: Path) -> Roots:
    """A home with a project and a workspace in it, made on disk."""
    home = place / "home"
    roots = Roots(home=home, workspace=home / "artoo_workspace", project=home / "project")
    roots.workspace.mkdir(parents=True)
    roots.project.mkdir()
    return roots


MakeToolbox = Callable[..., SubTaskToolbox]
"""What the fixture `make_toolbox` gives."""


def said(call: ToolCall) -> str:
    """Everything that a record tells its reader."""
    return "\n".join(filter(None, (call.output, call.error_output, call.reason)))
