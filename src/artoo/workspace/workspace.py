"""The live workspace of a running task, which starts its sandbox at first use, and restarts it.

Before the first command or write, tools read the user's own files. Nothing is stored on disk, and no process runs.
If the sandbox dies, the next command starts a new one over the same files. It then reports the loss once instead of
running.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from artoo.contracts.changes import Change
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ClassifiedChange
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import BackendName, Command, Ended, Files, Mark, Process, SandboxLimits, Trial
from artoo.sandbox.protocols import Backend, Sandbox
from artoo.sandbox.remove_tree import remove_tree
from artoo.workspace import git
from artoo.workspace.changes.change_set import GitPart, GitQuestion, read_change_set, read_changes
from artoo.workspace.changes.tree import Tree, read_tree
from artoo.workspace.copies import CopyLimits, copy_workspace
from artoo.workspace.directory import WorkspaceDirectory, Workspaces
from artoo.workspace.files.layered import CopyFiles, offline_files
from artoo.workspace.files.rooted import LocatedFiles, RootedFiles, real_files
from artoo.workspace.fs.names import printable
from artoo.workspace.settlement.inside import run_inside
from artoo.workspace.state import Services, WorkspaceState

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class TreeMark:
    """Implements `ports.workspace.Mark`. `tree` is None if there was no workspace yet."""

    tree: Tree | None


class LiveWorkspace:
    """Implements `ports.workspace.Workspace`. `parent`: for a fork, the workspace that it was made from, which
    holds the lock."""

    def __init__(
        self, services: Services, directory: WorkspaceDirectory, roots: Roots, parent: LiveWorkspace | None = None
    ) -> None:
        self._services = services
        self._directory = directory
        self._state = WorkspaceState(services, directory, roots, locks=parent is None)
        self._parent = parent
        self._starting = asyncio.Lock()
        self._looking = asyncio.Lock()
        self._sandbox: Sandbox | None = None
        self._files: LocatedFiles | None = None
        self._processes: list[Process] = []
        self._started = 0
        self._lost = ""
        self._closed = False
        self._forks: dict[str, LiveWorkspace] = {}

    @property
    def task_id(self) -> str:
        return (self if self._parent is None else self._parent)._directory.task_id

    @property
    def backend(self) -> BackendName:
        return self._services.backend.name

    @property
    def roots(self) -> Roots:
        return self._state.roots

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the model and the user about paths that commands cannot see, or that are missing in the
        copies."""
        hidden = () if self._sandbox is None else self._sandbox.hidden
        unseen = (f"not visible to commands: {', '.join(hidden)}",) if hidden else ()
        return (*self._state.notes, *unseen)

    @property
    def files(self) -> Files:
        return self._located()

    def _located(self) -> LocatedFiles:
        if self._files is None:
            if not self._directory.exists:
                return real_files()
            self._files = offline_files(self._directory)
        return self._files

    @property
    def processes(self) -> tuple[Process, ...]:
        return tuple(self._processes)

    async def start(self, command: Command) -> Process:
        sandbox = await self._living()
        lost, self._lost = self._lost, ""
        if lost:
            raise SandboxError(lost)
        output = self._next_output()
        process = await sandbox.start(command, output.name, output)
        self._processes.append(process)
        return process

    def _next_output(self) -> Path:
        """Make the output file of the next process. Its name is unique among the processes of this task."""
        home = self._directory.output
        self._started = (self._started or len(os.listdir(home))) + 1
        output = home / f"p{self._started}"
        with suppress(OSError):  # the disk may be full
            output.touch(mode=0o600)
        return output

    async def run(self, command: Command, seconds: float) -> Ended:
        return await _to_its_end(await self.start(command), seconds)

    async def _living(self) -> Sandbox:
        """Return the running sandbox. It is started first if none is running."""
        async with self._starting:
            if self._closed:
                raise SandboxError(f"the workspace of task {self.task_id} is closed")
            sandbox = self._sandbox
            if sandbox is not None and sandbox.alive:
                return sandbox
            if sandbox is not None:
                await self._bury(sandbox)
            # The lock is acquired first, because two sandboxes that use the same upper directory would have
            # undefined results.
            await self._blocking(self._state.hold)
            opened = await self._services.backend.open(self._state.layout())
            self._hide()
            self._sandbox = opened
            if opened.root is not None:
                self._files = RootedFiles(opened.root)
            else:
                self._files = CopyFiles(self._state.covered, self._directory.scratch)
            return opened

    def _hide(self) -> None:
        files, self._files = self._files, None
        if files is not None:
            files.close()

    async def _bury(self, dead: Sandbox) -> None:
        """Close a sandbox that ended by itself, and store a message about it for the next command."""
        running = [process for process in self._processes if process.ended is None]
        self._sandbox = None
        self._hide()
        await dead.close()
        names = ", ".join(f"{one.id} ({' '.join(one.argv)[:80]})" for one in running)
        self._lost = (
            "the sandbox of this task ended unexpectedly; its files are as they were"
            f"{f', but these processes are gone: {names}' if names else ''}. A new sandbox runs now: try again"
        )

    async def _blocking(self, work: Callable[[], _T]) -> _T:
        async with self._looking:
            return await in_thread(work)

    async def _resumed(self) -> bool:
        """Open a workspace that an earlier process left. Returns False if there is none."""
        if self._state.held:
            return True
        if not self._directory.exists:
            return False
        await self._blocking(self._state.hold)
        return True

    async def mark(self) -> Mark:
        return TreeMark(await self._blocking(self._state.look) if await self._resumed() else None)

    async def changes_since(self, mark: Mark) -> tuple[Change, ...]:
        assert isinstance(mark, TreeMark)
        if not self._state.held:
            return ()
        return await self._blocking(lambda: self._state.changes_since(mark.tree))

    async def refresh(self) -> tuple[str, ...]:
        if not self._state.held:
            return ()
        sandbox = self._sandbox
        if sandbox is not None and sandbox.alive:
            await sandbox.refresh()
        try:
            return await self._blocking(lambda: self._state.refresh(self._located()))
        except OSError as error:
            raise SandboxError(f"your files cannot be shown as they are now: {error}; free space") from error

    async def write(self, path: Path, content: bytes) -> tuple[Change, ...]:
        await self._living()
        shown = printable(path)
        if len(content) > self._services.limits.disk_bytes:
            raise SandboxError(f"{shown} is larger than the workspace may be")
        try:
            return await self._blocking(lambda: self._state.write(self._writable(), path, content))
        except OSError as error:
            raise SandboxError(f"{shown} cannot be written: {error.strerror}; nothing was changed") from error

    def _writable(self) -> LocatedFiles:
        files = self._located()
        # a write to any other kind of workspace would change the user's own files
        if not isinstance(files, (RootedFiles, CopyFiles)):
            raise SandboxError("the sandbox of this task ended unexpectedly; nothing was written: try again")
        return files

    async def try_out(self, command: Command, seconds: float) -> Trial:
        await self._living()
        trial = self._directory.trial(uuid.uuid4().hex)
        try:
            layout, covered = await in_thread(lambda: self._state.trial_layout(trial))
            before = await in_thread(lambda: read_tree(covered, Tree(), overlay=not layout.copies))
            sandbox = await self._services.backend.open(layout)
            try:
                ended = await _to_its_end(await sandbox.start(command, "trial", trial.output / "trial"), seconds)
            finally:
                await sandbox.close()
            return Trial(ended, await in_thread(lambda: self._state.tried(covered, before, self._located())))
        except OSError as error:
            raise SandboxError(f"the check cannot be run: {error.strerror}; free space") from error
        finally:
            await in_thread(lambda: remove_tree(trial.base))

    async def changes(self) -> tuple[Change, ...]:
        return await self._blocking(self._changes) if await self._resumed() else ()

    def _changes(self) -> tuple[Change, ...]:
        self._state.look()
        return read_changes(self._directory, self._services.artoo_home)

    async def classes(self) -> tuple[ClassifiedChange, ...]:
        return await self._blocking(self._classes) if await self._resumed() else ()

    def _classes(self) -> tuple[ClassifiedChange, ...]:
        self._state.look()
        return read_change_set(self._directory, self._services.artoo_home, judge_git=self._judge_git).all_classes

    def _judge_git(self, question: GitQuestion) -> GitPart:
        services = self._services
        return git.judge(question, partial(run_inside, self._directory, services.artoo_home, services.backend))

    async def fork(self, name: str) -> LiveWorkspace:
        await self.discard_fork(name)
        await self._blocking(self._state.hold)
        target = self._directory.fork(name)
        await self._blocking(lambda: copy_workspace(self._directory, target))
        fork = LiveWorkspace(self._services, target, self.roots, self._parent or self)
        self._forks[name] = fork
        return fork

    async def discard_fork(self, name: str) -> None:
        fork = self._forks.pop(name, None)
        if fork is not None:
            await fork.close()
        await in_thread(lambda: remove_tree(self._directory.fork(name).base))

    async def stop_processes(self) -> tuple[Process, ...]:
        running = tuple(process for process in self._processes if process.ended is None)
        await asyncio.gather(*(process.stop() for process in running))
        return running

    async def close(self) -> None:
        async with self._starting:
            self._closed = True
            for name in tuple(self._forks):
                await self._forks.pop(name).close()
            sandbox, self._sandbox = self._sandbox, None
            self._hide()
            try:
                if sandbox is not None:
                    await sandbox.close()
            finally:
                if self._state.held:
                    await self._blocking(self._state.close)


async def in_thread(work: Callable[[], _T]) -> _T:
    """Run blocking `work` in a thread, and return its result. If the caller is cancelled, it still waits until the
    work ends."""
    # This is no asyncio task, because an event loop that ends cancels all tasks, and no one would receive the
    # result of the thread.
    running = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise


async def _to_its_end(process: Process, seconds: float) -> Ended:
    """Wait for a process, and stop it after `seconds` or when cancelled."""
    try:
        ended = await process.wait(seconds)
        return ended if ended is not None else await process.stop()
    except asyncio.CancelledError:
        await asyncio.shield(process.stop())
        raise


def workspaces_in(
    backend: Backend,
    artoo_home: Path,
    *,
    limits: SandboxLimits | None = None,
    copy_limits: CopyLimits | None = None,
) -> Callable[[str, Roots], LiveWorkspace]:
    """Return a function that opens workspaces below artoo's home (`ports.workspace.OpenWorkspace`)."""
    home = artoo_home.resolve()
    services = Services(backend, home, limits or SandboxLimits(), copy_limits or CopyLimits())
    return lambda task_id, roots: LiveWorkspace(services, Workspaces(home).directory(task_id), roots)
