"""A task's workspace while the task works: one living sandbox over the workspace on disk.

Until the first command or write the files are the user's own, nothing is on disk and no process runs. If the
sandbox dies, the next command reports it once, and the one after it starts a new sandbox over the same files.
"""

from __future__ import annotations

import asyncio
import os
import stat
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from artoo.contracts.changes import Change, printable_path
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ClassifiedChange
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import BackendName, Command, Ended, Files, Mark, Process, Trial
from artoo.sandbox.protocols import Layer, Layout, Sandbox
from artoo.workspace import git
from artoo.workspace.changes.change_set import GitPart, GitQuestion, read_change_set, read_changes
from artoo.workspace.changes.effect import Effect
from artoo.workspace.changes.upper_index import Difference, Index, opened, read_index, state_below
from artoo.workspace.directory import Covered, WorkspaceDirectory, make_upper
from artoo.workspace.files.copied import CopyFiles
from artoo.workspace.files.layered import offline_files
from artoo.workspace.files.rooted import PRIVATE, LocatedFiles, RootedFiles, real_files
from artoo.workspace.files.write_file import write_beneath
from artoo.workspace.forks import copy_workspace
from artoo.workspace.fs.remove_tree import remove_tree
from artoo.workspace.fs.stat import NodeState
from artoo.workspace.fs.to_thread import in_thread
from artoo.workspace.settlement.inside import run_inside
from artoo.workspace.state import Services, WorkspaceState

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class StatMark:
    """Implements `ports.workspace.Mark`. `index` None: there was no workspace yet."""

    index: Index | None


class LiveWorkspace:
    """Implements `ports.workspace.Workspace`. `parent` holds the lock of a fork."""

    def __init__(
        self,
        services: Services,
        directory: WorkspaceDirectory,
        roots: Roots,
        parent: LiveWorkspace | None = None,
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
        """Facts about the workspace for model and user: what commands cannot see or is not in the copy."""
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
        name = self._next_id()
        process = await sandbox.start(command, name, self._directory.output / name)
        self._processes.append(process)
        return process

    def _next_id(self) -> str:
        """Return an id that no process of this task has had, also before a restart."""
        if not self._started:
            with suppress(OSError, ValueError):
                self._started = int(self._directory.process_count.read_text())
        self._started += 1
        return f"p{self._started}"

    def _save_count(self) -> None:
        """Remember how many processes were started: after a call, because writing takes longer than a start."""
        if self._started:
            with suppress(OSError):  # a full disk must not keep a command from making room
                self._directory.process_count.write_text(str(self._started))

    async def run(self, command: Command, seconds: float) -> Ended:
        process = await self.start(command)
        return await _to_its_end(process, seconds)

    async def _living(self) -> Sandbox:
        """Return the sandbox, started or started again if need be."""
        async with self._starting:
            if self._closed:
                raise SandboxError(f"the workspace of task {self.task_id} is closed")
            sandbox = self._sandbox
            if sandbox is not None and sandbox.alive:
                return sandbox
            if sandbox is not None:
                await self._bury(sandbox)
            async with self._looking:
                await in_thread(self._state.hold)
            opened = await self._services.backend.open(self._state.layout())
            self._sandbox = opened
            self._show(opened)
            return opened

    def _show(self, sandbox: Sandbox) -> None:
        """Read files from now on as the sandbox shows them."""
        self._hide()
        if sandbox.root is not None:
            self._files = RootedFiles(sandbox.root)
        else:
            self._files = CopyFiles(self._state.covered, self._directory.scratch)

    def _hide(self) -> None:
        files, self._files = self._files, None
        if files is not None:
            files.close()

    async def _bury(self, dead: Sandbox) -> None:
        """Remember what is to be said of a sandbox that ended by itself."""
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

    async def mark(self) -> Mark:
        if not self._state.held:
            if not self._directory.exists:
                return StatMark(None)
            await self._blocking(self._state.hold)
        return StatMark(await self._blocking(self._state.index))

    async def changes_since(self, mark: Mark) -> tuple[Change, ...]:
        assert isinstance(mark, StatMark)
        if not self._state.held:
            return ()
        return await self._blocking(lambda: self._changes_since(mark.index))

    def _changes_since(self, old: Index | None) -> tuple[Change, ...]:
        self._save_count()
        return self._state.changes_since(old, self._located())

    async def refresh(self) -> tuple[str, ...]:
        if not self._state.held:
            return ()
        sandbox = self._sandbox
        if sandbox is not None and sandbox.alive:
            await sandbox.refresh()
        return await self._blocking(self._state.refresh)

    async def write(self, path: Path, content: bytes) -> tuple[Change, ...]:
        await self._living()
        if len(content) > self._services.limits.disk_bytes:
            raise SandboxError(f"{printable_path(os.fsencode(path))} is larger than the workspace may be")
        return await self._blocking(lambda: self._write(path, content))

    def _write(self, path: Path, content: bytes) -> tuple[Change, ...]:
        files = self._located()
        if not isinstance(files, (RootedFiles, CopyFiles)):  # other files lead to the user's own
            raise SandboxError("the sandbox of this task ended unexpectedly; nothing was written: try again")
        shown = printable_path(os.fsencode(path))
        try:
            real = files.resolve(self.roots.project / path)
            one = self._covering(real)
            if one is None:
                self._write_private(real, content)
                return ()
            if _holds(files, real, content):
                return ()
            new = _missing(files, one, real)
            self._state.record_before_write(printable_path(os.fsencode(above)) for above in (*new, real))
            before = {above: _state(files, one, above) for above in (*new, real)}
            root, below = files.locate(str(real))
            write_beneath(root, below, content)
            effects = (_effect(one, above, before[above], _state(files, one, above)) for above in (*new, real))
            return self._state.described([effect for effect in effects if effect is not None], files)
        except OSError as error:
            raise SandboxError(f"{shown} cannot be written: {error.strerror}; nothing was changed") from error

    def _covering(self, path: Path) -> Covered | None:
        holding = [one for one in self._state.covered if path != one.root and path.is_relative_to(one.root)]
        return max(holding, key=lambda one: len(one.root.parts), default=None)

    def _write_private(self, real: Path, content: bytes) -> None:
        """Write to the task's own /tmp, which is not among the changes."""
        for place in PRIVATE:
            if real.is_relative_to(place) and str(real) != place:
                with opened(self._directory.scratch) as scratch:
                    write_beneath(scratch, str(real.relative_to(place)), content)
                return
        shown = printable_path(os.fsencode(real))
        raise SandboxError(f"{shown} is outside home, workspace and project: nothing may be written there")

    async def try_out(self, command: Command, seconds: float) -> Trial:
        await self._living()
        trial = self._directory.trial(uuid.uuid4().hex)
        try:
            layout, covered = await in_thread(lambda: self._trial_layout(trial))
            before = await in_thread(lambda: read_index(covered))
            sandbox = await self._services.backend.open(layout)
            try:
                process = await sandbox.start(command, "trial", trial.output / "trial")
                ended = await _to_its_end(process, seconds)
            finally:
                await sandbox.close()
            return Trial(ended, await in_thread(lambda: self._tried(covered, before)))
        except OSError as error:
            raise SandboxError(f"the check cannot be run: {error.strerror}; free space") from error
        finally:
            await in_thread(lambda: remove_tree(trial.base))

    def _trial_layout(self, trial: WorkspaceDirectory) -> tuple[Layout, tuple[Covered, ...]]:
        """Lay throw-away upper directories over the workspace's; without an overlay, copy the workspace."""
        layout = self._state.layout()
        if layout.copies:
            copy_workspace(self._directory, trial)
            covered = tuple(replace(one, place=trial.copy(one.number)) for one in self._state.covered)
            copies = tuple((one.root, one.place) for one in covered)
            return replace(layout, copies=copies, scratch=trial.scratch), covered
        trial.output.mkdir(mode=0o700, parents=True)
        layers: list[Layer] = []
        for one in self._state.covered:
            make_upper(trial.upper(one.number), one.place)
            trial.work(one.number).mkdir(mode=0o700)
            layers.append(Layer(one.root, trial.upper(one.number), trial.work(one.number), (one.place,)))
        covered = tuple(replace(one, place=trial.upper(one.number)) for one in self._state.covered)
        return replace(layout, layers=tuple(layers), scratch_is_shared=True), covered

    def _tried(self, covered: tuple[Covered, ...], before: Index) -> tuple[Change, ...]:
        files = self._located()
        lower = None if self._state.copies() else files
        effects = Difference(covered, before, read_index(covered, before), lower).effects()
        return self._state.described(effects, files)

    async def changes(self) -> tuple[Change, ...]:
        if not await self._resumed():
            return ()
        return await self._blocking(self._changes)

    def _changes(self) -> tuple[Change, ...]:
        self._state.look()
        return read_changes(self._directory, self._services.artoo_home, self._located())

    async def classes(self) -> tuple[ClassifiedChange, ...]:
        if not await self._resumed():
            return ()
        return await self._blocking(self._classes)

    def _classes(self) -> tuple[ClassifiedChange, ...]:
        self._state.look()
        found = read_change_set(
            self._directory, self._services.artoo_home, judge_git=self._judge_git, after=self._located()
        )
        return found.all_classes

    def _judge_git(self, question: GitQuestion) -> GitPart:
        services = self._services
        return git.judge(question, partial(run_inside, self._directory, services.artoo_home, services.backend))

    async def _resumed(self) -> bool:
        """Hold a workspace that an earlier process left; False when there is none."""
        if not self._directory.exists:
            return False
        await self._blocking(self._state.hold)
        return True

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
                    await self._blocking(self._close_state)

    def _close_state(self) -> None:
        self._save_count()
        self._state.close()


async def _to_its_end(process: Process, seconds: float) -> Ended:
    """Wait for a process, and stop it after `seconds` or when cancelled."""
    try:
        ended = await process.wait(seconds)
        return ended if ended is not None else await process.stop()
    except asyncio.CancelledError:
        await asyncio.shield(process.stop())
        raise


def _holds(files: Files, path: Path, content: bytes) -> bool:
    """True if exactly this content is in the file already: to write it again would change its times alone."""
    try:
        seen = files.stat(path)
        if seen is None or not stat.S_ISREG(seen.mode) or seen.size != len(content):
            return False
        with files.open(path) as file:
            return file.read(len(content) + 1) == content
    except OSError:
        return False


def _missing(files: LocatedFiles, one: Covered, path: Path) -> tuple[Path, ...]:
    """Return the directories above a path that are not there, outermost first."""
    inside = [above for above in path.parents if above != one.root and above.is_relative_to(one.root)]
    return tuple(above for above in reversed(inside) if files.stat(above) is None)


def _state(files: LocatedFiles, one: Covered, path: Path) -> NodeState | None:
    return state_below(files, one, str(path.relative_to(one.root)))


def _effect(one: Covered, path: Path, before: NodeState | None, after: NodeState | None) -> Effect | None:
    raw = os.fsencode(path)
    return None if after is None else Effect(os.fsencode(one.root), raw, printable_path(raw), before, after)
