"""One task's workspace on disk as this process holds it: lock, index, base and copies. Everything here blocks.

`LiveWorkspace` runs it in threads, one call at a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import Change
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Files, SandboxLimits
from artoo.sandbox.protocols import Backend, Layout
from artoo.sandbox.reading.hidden_paths import hidden_paths
from artoo.sandbox.reading.path_set import PathSet, outermost
from artoo.workspace.changes.base import BaseBook, user_changes
from artoo.workspace.changes.describe import describe
from artoo.workspace.changes.effect import Effect
from artoo.workspace.changes.manifest import Manifest
from artoo.workspace.changes.path_class import Places
from artoo.workspace.changes.pycache import split_caches
from artoo.workspace.changes.time_window import Moment
from artoo.workspace.changes.upper_index import Difference, Index, look, read_index
from artoo.workspace.copies import Copier, CopyLimits
from artoo.workspace.directory import PATIENCE_SECONDS, Covered, WorkspaceDirectory, WorkspaceKind, Workspaces
from artoo.workspace.files.rooted import real_files


@dataclass(frozen=True, slots=True)
class Services:
    """What all workspaces of a process share. `hide` adds paths out of the commands' reach."""

    backend: Backend
    artoo_home: Path
    hide: tuple[Path, ...] = ()
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    copy_limits: CopyLimits = field(default_factory=CopyLimits)


class WorkspaceState:
    """The state of one workspace. `locks`: it has a lock of its own, which a fork has not."""

    def __init__(self, services: Services, directory: WorkspaceDirectory, roots: Roots, *, locks: bool) -> None:
        self.directory = directory
        self.roots = roots
        self._services = services
        self._locks = locks
        self._lock: int | None = None
        self._covered: tuple[Covered, ...] | None = None
        self._book: BaseBook | None = None
        self._copier: Copier | None = None
        self._places: Places | None = None
        self._first = Index()
        self._last = Index()
        self._reported: dict[str, tuple[int, int]] = {}

    @property
    def held(self) -> bool:
        """True if this process works in the workspace."""
        return self._covered is not None

    @property
    def notes(self) -> tuple[str, ...]:
        """What is missing in the copies."""
        return () if self._copier is None else self._copier.notes()

    def hold(self) -> None:
        """Take the lock, and make what is not there yet. Idempotent. Raises SandboxError; then nothing is left."""
        if self._covered is not None:
            return
        fresh = not self.directory.exists
        try:
            if self._locks:
                Workspaces(self._services.artoo_home).require_readable(self.directory.task_id)
                self._lock = self.directory.lock(PATIENCE_SECONDS)
                fresh = not self.directory.exists
            self._open(fresh)
        except OSError as error:
            self._undo(fresh)
            raise SandboxError(
                f"the workspace {self.directory.base} cannot be made: {error.strerror}; free space or check its "
                "permissions"
            ) from error
        except BaseException:
            self._undo(fresh)
            raise

    def _open(self, fresh: bool) -> None:
        backend = self._services.backend
        began = _settled_moment()
        if fresh:
            self._require_readable_project()
            if self._lock is not None:
                self.directory.remove_rest()
            self.directory.make(backend.name, self.roots, self._roots_to_cover())
        record = self.directory.record()
        if (record.kind is WorkspaceKind.OVERLAY) is not backend.has_overlay:
            raise SandboxError(
                f"the workspace of task {self.directory.task_id} is {_KINDS[record.kind]}, and this machine's "
                f"sandbox ({backend.name}) cannot continue in it; settle it, or start the request anew"
            )
        for trial in self.directory.trials():
            trial.remove()  # a crash left it
        self._book = BaseBook(self.directory.base_file, began)
        covered = record.covered_roots
        if record.kind is WorkspaceKind.COPY:
            self._copier = self._follow(covered)
        self._book.load()
        self._covered = self.directory.covered()
        first = self.look()
        if self._copier is not None:  # an overlay begins empty
            self._first = first

    def _undo(self, fresh: bool) -> None:
        self._covered = self._book = self._copier = None
        if fresh and (self._lock is not None or not self._locks):
            self.directory.remove()
        self._release()

    def _require_readable_project(self) -> None:
        project = self.roots.project
        if not os.access(project, os.R_OK | os.X_OK) or not project.is_dir():
            raise SandboxError(
                f"the project {project} cannot be read: check that it exists and that you may open it\n"
                f"ls -ld {project}"
            )

    def _roots_to_cover(self) -> tuple[Path, ...]:
        """Return what an overlay lies over; without one, project and output folder, which are copied."""
        if self._services.backend.has_overlay:
            return self._services.backend.roots_to_cover(self.roots)
        found = {os.path.realpath(path) for path in (self.roots.project, self.roots.workspace) if path.is_dir()}
        return tuple(map(Path, outermost(found)))

    def _follow(self, roots: Iterable[Path]) -> Copier:
        """Make the copies, or bring them up to the user's files."""
        hidden = PathSet(hidden_paths(self.roots, self._services.artoo_home, self._services.hide))
        copier = Copier(
            Manifest.read(self.directory.manifest),
            lambda path: hidden.cover(os.fsdecode(path)),
            self._services.copy_limits,
        )
        copier.follow(Covered(number, root, self.directory.copy(number)) for number, root in enumerate(roots))
        return copier

    def layout(self) -> Layout:
        """Return what a sandbox is made of. Raises SandboxError."""
        return Layout(
            task_id=self.directory.task_id,
            roots=self.roots,
            artoo_home=self._services.artoo_home,
            scratch=self.directory.scratch,
            layers=self.directory.layers(),
            copies=self.copies(),
            hide=self._services.hide,
            limits=self._services.limits,
        )

    def copies(self) -> tuple[tuple[Path, Path], ...]:
        """Return the real directories with their copies."""
        return () if self._copier is None else tuple((one.root, one.place) for one in self.covered)

    @property
    def covered(self) -> tuple[Covered, ...]:
        return self._covered or ()

    @property
    def places(self) -> Places:
        if self._places is None:
            self._places = Places.of(self.roots, self._services.artoo_home)
        return self._places

    def index(self) -> Index:
        """Read the index as it is now."""
        found = read_index(self.covered, self._last)
        self._last = found
        return found

    def look(self) -> Index:
        """Read the index, and record the user's versions of what newly changed. Raises SandboxError (full disk)."""
        if self._book is None:
            return Index()
        manifest = None if self._copier is None else self._copier.manifest
        self._last = look(self._book, self.covered, manifest, self._last)
        return self._last

    def record_before_write(self, paths: Iterable[str]) -> None:
        """Record the user's versions of printable paths that are about to be written. Raises OSError."""
        assert self._book is not None
        self._book.record(paths)

    def changes_since(self, old: Index | None, files: Files) -> tuple[Change, ...]:
        """Return what changed since an index was read; None: since the workspace was made."""
        new = self.look()
        lower = None if self._copier is not None else real_files()
        effects = Difference(self.covered, self._first if old is None else old, new, lower).effects()
        return self.described(effects, files)

    def described(self, effects: Iterable[Effect], files: Files) -> tuple[Change, ...]:
        """Return the changes that count."""
        counted, _ = split_caches(list(effects))
        return describe(counted, self.places, files)

    def refresh(self) -> tuple[str, ...]:
        """Bring copies up to date, and return the printable paths that both sides have newly changed."""
        assert self._book is not None
        if self._copier is not None:
            self._copier.follow(self.covered)
        _settled_moment()
        self.look()
        found: list[str] = []
        for path, version in user_changes(self._book.bases.values()):
            if self._reported.get(path) != version:
                self._reported[path] = version
                found.append(path)
        return tuple(found)

    def close(self) -> None:
        """Look a last time, and release the lock."""
        with suppress(SandboxError):  # on a full disk the next look does it, and finds more conflicts
            self.look()
        self._covered = self._book = self._copier = None
        self._release()

    def _release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


_KINDS = {WorkspaceKind.OVERLAY: "an overlay", WorkspaceKind.COPY: "a copy"}


def _settled_moment() -> Moment:
    """Wait until the clock of change times has passed now, and return its time.

    That clock stands still between ticks of up to 4 ms. Otherwise a file that the user wrote just before would seem
    to be written after.
    """
    until = time.time_ns()
    while (now := Moment.now()).wall_ns < until and until - now.wall_ns < 50_000_000:
        time.sleep(0.001)
    return now
