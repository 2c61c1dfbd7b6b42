"""The blocking state of a task's open workspace, with lock, tree, bases and copies.

All methods block.

`LiveWorkspace` calls them in threads, one call at a time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from artoo.contracts.changes import Change, Node
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import MIB, SandboxLimits
from artoo.sandbox.protocols import Backend, Layer, Layout
from artoo.sandbox.reading.hidden_paths import hidden_paths
from artoo.sandbox.reading.path_set import PathSet, outermost
from artoo.workspace.changes.base import (
    Base,
    BaseBook,
    BaseManifest,
    after_tick_ns,
    now_ns,
    replace_bases,
    user_changes,
)
from artoo.workspace.changes.describe import describe, without_caches
from artoo.workspace.changes.effect import Effect
from artoo.workspace.changes.path_class import Places
from artoo.workspace.changes.tree import Difference, Tree, is_deletion, note_bases, read_tree
from artoo.workspace.copies import Copier, CopyLimits, copy_workspace
from artoo.workspace.directory import PATIENCE_SECONDS, Covered, WorkspaceDirectory, Workspaces, make_upper
from artoo.workspace.files.beneath import parent_of, write_beneath
from artoo.workspace.files.layered import CopyFiles
from artoo.workspace.files.rooted import PRIVATE, LocatedFiles, RootedFiles, real_files
from artoo.workspace.files.walker import Walker
from artoo.workspace.fs.names import printable, text_of
from artoo.workspace.fs.stat import NodeState, opened

_MOST_FOLLOWED = 64 * MIB
"""The maximum size of a file that is copied to the workspace again when the user edits it after a live apply."""


@dataclass(frozen=True, slots=True)
class Services:
    """The backend and the limits that all workspaces of a process use."""

    backend: Backend
    artoo_home: Path
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    copy_limits: CopyLimits = field(default_factory=CopyLimits)


class WorkspaceState:
    """The state of one workspace. `locks`: true if the workspace has a lock of its own. A fork has none."""

    def __init__(self, services: Services, directory: WorkspaceDirectory, roots: Roots, *, locks: bool) -> None:
        self.directory = directory
        self.roots = roots
        self.covered: tuple[Covered, ...] = ()
        self.held = False
        self._services = services
        self._locks = locks
        self._lock: int | None = None
        self._book = BaseBook(directory.base_file, 0)
        self._copier: Copier | None = None
        self._places: Places | None = None
        self._first = Tree()
        self._last = Tree()
        self._reported: dict[str, tuple[int, int]] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes about paths that are missing in the copies."""
        return () if self._copier is None else self._copier.notes()

    @property
    def places(self) -> Places:
        if self._places is None:
            self._places = Places.of(self.roots, self._services.artoo_home)
        return self._places

    def hold(self) -> None:
        """Acquire the lock, and make the workspace if needed. Idempotent. If it raises SandboxError, everything
        that it did is undone."""
        if self.held:
            return
        fresh = False
        try:
            if self._locks:
                Workspaces(self._services.artoo_home).require_readable(self.directory.task_id)
                self._lock = self.directory.lock(PATIENCE_SECONDS)
            fresh = not self.directory.exists
            self._open(fresh)
            self.held = True
        except OSError as error:
            raise SandboxError(
                f"the workspace {self.directory.base} cannot be made: {error.strerror}; free space or check its "
                "permissions"
            ) from error
        finally:
            if not self.held:
                if fresh:
                    self.directory.remove()
                self._release()

    def _open(self, fresh: bool) -> None:
        backend, began_ns = self._services.backend, after_tick_ns()
        if fresh:
            self._require_readable_project()
            if self._locks:
                self.directory.remove_rest()
            self.directory.make(backend.name, self.roots, self._roots_to_cover())
        record = self.directory.record()
        if record.is_overlay is not backend.has_overlay:
            kind = "an overlay" if record.is_overlay else "a copy"
            raise SandboxError(
                f"the workspace of task {self.directory.task_id} is {kind}, and this machine's sandbox "
                f"({backend.name}) cannot continue in it; settle it, or start the request again"
            )
        # No other process uses the workspace, because the lock is held and no sandbox has been opened yet.
        self.directory.remove_leftovers()
        if not record.is_overlay:
            self._copier = self._follow(record.covered_roots)
        self._book = BaseBook(self.directory.base_file, began_ns)
        self.covered = self.directory.covered()
        first = self.look()
        if self._copier is not None:  # without copies the first tree is empty, because the overlay is empty
            self._first = first

    def _require_readable_project(self) -> None:
        project = self.roots.project
        if not os.access(project, os.R_OK | os.X_OK) or not project.is_dir():
            raise SandboxError(
                f"the project {project} cannot be read: check that it exists and that you may open it\n"
                f"ls -ld {project}"
            )

    def _roots_to_cover(self) -> tuple[Path, ...]:
        """Return the directories to cover. Without an overlay, these are only the project and the output folder, of
        which copies are made."""
        if self._services.backend.has_overlay:
            return self._services.backend.roots_to_cover(self.roots)
        found = {os.path.realpath(path) for path in (self.roots.project, self.roots.workspace) if path.is_dir()}
        return tuple(map(Path, outermost(found)))

    def _follow(self, roots: Iterable[Path]) -> Copier:
        """Make the copies, or update them from the user's files."""
        hidden = PathSet(hidden_paths(self.roots, self._services.artoo_home))
        copier = Copier(BaseManifest.read(self.directory.manifest), hidden.cover, self._services.copy_limits)
        copier.follow(Covered(number, root, self.directory.copy(number)) for number, root in enumerate(roots))
        return copier

    def layout(self) -> Layout:
        """Return the layout for a sandbox over this workspace. Raises SandboxError."""
        copied = () if self._copier is None else tuple((one.root, one.place) for one in self.covered)
        return Layout(
            task_id=self.directory.task_id,
            roots=self.roots,
            artoo_home=self._services.artoo_home,
            scratch=self.directory.scratch,
            layers=self.directory.layers(),
            copies=copied,
            limits=self._services.limits,
        )

    def trial_layout(self, trial: WorkspaceDirectory) -> tuple[Layout, tuple[Covered, ...]]:
        """Make the layout of a temporary layer over the workspace. If there is no overlay, copy the workspace
        instead."""
        layout = self.layout()
        if self._copier is not None:
            copy_workspace(self.directory, trial)
            covered = tuple(replace(one, place=trial.copy(one.number)) for one in self.covered)
            copies = tuple((one.root, one.place) for one in covered)
            return replace(layout, copies=copies, scratch=trial.scratch), covered
        trial.output.mkdir(mode=0o700, parents=True)
        layers: list[Layer] = []
        for one in self.covered:
            make_upper(trial.upper(one.number), one.place)
            trial.work(one.number).mkdir(mode=0o700)
            layers.append(Layer(one.root, trial.upper(one.number), trial.work(one.number), (one.place,)))
        covered = tuple(replace(one, place=trial.upper(one.number)) for one in self.covered)
        return replace(layout, layers=tuple(layers), scratch_is_shared=True), covered

    def look(self, since: Tree | None = None) -> Tree:
        """Read the tree, and record the user's version of each newly changed path. Raises SandboxError (full disk).

        `since`: details are read for paths that differ from this tree.
        """
        read_ns, before = now_ns(), self._last
        self._last = read_tree(self.covered, before, since, overlay=self._copier is None)
        manifest = None if self._copier is None else self._copier.manifest
        try:
            note_bases(self._book, self.covered, manifest, before, self._last, read_ns)
        except SandboxError:
            self._last = before
            raise
        return self._last

    def changes_since(self, old: Tree | None) -> tuple[Change, ...]:
        """Return the changes since the tree `old` was read, or since the workspace was made if it is None."""
        since = self._first if old is None else old
        with Walker() as users:
            return self._difference(self.covered, since, self.look(since), users)

    def tried(self, covered: tuple[Covered, ...], before: Tree, files: LocatedFiles) -> tuple[Change, ...]:
        """Return the changes that a check made in its temporary layer, compared with the workspace's files."""
        after = read_tree(covered, before, before, overlay=self._copier is None)
        with Walker(files.locate) as lower:
            return self._difference(covered, before, after, lower)

    def _difference(self, covered: tuple[Covered, ...], old: Tree, new: Tree, lower: Walker) -> tuple[Change, ...]:
        overlay = self._copier is None
        gone = [key for key in old.seen.keys() - new.seen.keys() if not (overlay and is_deletion(old.seen[key]))]
        try:
            effects = Difference(covered, old, new, lower if overlay else None, overlay).effects(gone)
        except OSError as error:
            raise SandboxError(f"what was changed cannot be read: {error}") from error
        return describe(without_caches(effects), self.places)

    def write(self, files: LocatedFiles, path: Path, content: bytes) -> tuple[Change, ...]:
        """Write one file, and return the changes. Raises SandboxError, OSError."""
        real = files.resolve(self.roots.project / path)
        holding = [one for one in self.covered if _is_below(real, one.root)]
        if not holding:
            self._write_private(real, content)
            return ()
        root = max((one.root for one in holding), key=lambda one: len(one.parts))
        inside = [*(above for above in reversed(real.parents) if _is_below(above, root)), real]
        with Walker(files.locate) as reader:
            before = {one: reader.read(str(one)) for one in inside}
        if _holds(files, real, before[real], content):  # writing the same content again would change only the times
            return ()
        touched = [one for one in inside if before[one] is None or one == real]
        self._book.record(printable(one) for one in touched)
        write_beneath(*files.locate(str(real)), content)
        with Walker(files.locate) as reader:
            effects = [
                Effect(os.fsencode(root), os.fsencode(one), printable(one), before[one], reader.read(str(one)))
                for one in touched
            ]
        return describe([one for one in effects if one.after is not None], self.places)

    def _write_private(self, real: Path, content: bytes) -> None:
        """Write to the task's own /tmp, whose files are not part of the change set."""
        for place in map(Path, PRIVATE):
            if _is_below(real, place):
                with opened(self.directory.scratch) as scratch:
                    write_beneath(scratch, str(real.relative_to(place)), content)
                return
        raise SandboxError(
            f"{printable(real)} is outside home, workspace and project: nothing may be written there"
        )

    def refresh(self, files: LocatedFiles) -> tuple[str, ...]:
        """Update the copies. Return the printable paths that the user and the task have both newly changed.

        `files`: the files of the workspace. If a file was applied while the task runs and the user has changed it
        since, the workspace gets the user's version.
        """
        if self._copier is not None:
            self._copier.follow(self.covered)
        after_tick_ns()
        self.look()
        found: list[str] = []
        followed: dict[str, Base | None] = {}
        # a write to any other kind of workspace would change the user's own files
        writable = isinstance(files, (RootedFiles, CopyFiles))
        for base, state in user_changes(base for base in self._book.bases.values() if base is not None):
            if writable and base.applied and state is not None:
                new = _follow_applied(files, base, state)
                if new is not None:
                    followed[base.path] = new
                    continue
            version = (0, 0) if state is None else (state.inode, state.ctime_ns)
            if self._reported.get(base.path) != version:
                self._reported[base.path] = version
                found.append(base.path)
        if followed:
            replace_bases(self.directory.base_file, followed)
        return tuple(found)

    def close(self) -> None:
        """Read the tree a last time to record bases, and release the lock."""
        # after a full disk, the next reading records the bases and finds more conflicts
        with suppress(SandboxError):
            self.look()
        self.held = False
        self._release()

    def _release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


def _follow_applied(files: LocatedFiles, base: Base, state: NodeState) -> Base | None:
    """Copy the user's new version of an applied file into the workspace, and return this version as the new base.

    Returns None if the task has changed the file again, or if its metadata differ too.
    """
    path = text_of(base.path)
    with Walker(files.locate) as tasks:
        ours = tasks.read(path)
        if ours is None or not ours.same_metadata(state) or tasks.digest(path, ours) != base.sha256:
            return None
    if state.node is not Node.FILE or state.size > _MOST_FOLLOWED:
        return None
    with real_files().open(Path(path)) as file:
        content = file.read(_MOST_FOLLOWED)
    with Walker() as users:
        if users.read(path) != state:  # the user is writing the file at this moment, so the next turn copies it
            return None
    root, below = files.locate(path)
    write_beneath(root, below, content)
    with parent_of(root, below) as (parent, name):
        os.utime(name, ns=(state.mtime_ns, state.mtime_ns), dir_fd=parent, follow_symlinks=False)
    return base.model_copy(update={"was": state, "sha256": hashlib.sha256(content).hexdigest()})


def _holds(files: LocatedFiles, path: Path, state: NodeState | None, content: bytes) -> bool:
    """True if the file already has exactly this content."""
    if state is None or state.node is not Node.FILE or state.size != len(content):
        return False
    with suppress(OSError), files.open(path) as file:
        return file.read(len(content) + 1) == content
    return False


def _is_below(path: Path, directory: Path) -> bool:
    """True if a path is inside a directory, but not the directory itself."""
    return directory in path.parents
