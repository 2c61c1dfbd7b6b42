"""Find, make, lock and delete workspace directories, with the layout and `workspace.json`.

A workspace is made at the first command or write of the task.

docs/design/workspace.md shows the layout. `upper/N` contains the task's changes over root N, and `copy/N` is the
copy of root N. The directories of forks and of running checks are inside and have the same layout.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.errors import SandboxError
from artoo.disk.whole import write_whole
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import BackendName
from artoo.sandbox.protocols import Layer
from artoo.sandbox.remove_tree import remove_tree
from artoo.workspace.fs.names import printable, text_of
from artoo.workspace.fs.stat import attributes_of

FORMAT = 1
"""The format of the record `workspace.json`. A workspace with another format is never read. The user can only
discard it."""

PATIENCE_SECONDS = 5.0
"""Number of seconds to wait for the lock. A process that only lists or reviews holds it briefly."""

_LOCK = "lock"
_RECORD = "workspace.json"
_BETWEEN_TRIES_SECONDS = 0.02
_LEFTOVERS = ("mounts-*", "inside-*", "git-*")
"""Temporary directories of a sandbox, of a command in a one-shot sandbox, and of git's output."""


class WorkspaceInUse(SandboxError):
    """Raised if another process holds the workspace's lock."""


class OtherFormat(SandboxError):
    """Raised if an older or a newer version of artoo made the workspace. This version can only discard it."""


class WorkspaceRecord(BaseModel):
    """The content of `workspace.json`. Paths are printable.

    `backend`: the sandbox backend that runs the commands of this workspace. `covered`: the real directories. The
    one with number N has upper directory N or copy N.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    format: int = FORMAT
    task_id: str
    backend: BackendName
    created_at: float
    home: str
    workspace: str
    project: str
    covered: tuple[str, ...]

    @property
    def is_overlay(self) -> bool:
        """True if commands see an overlay over the real files. False if they see a copy of the project and the
        output folder."""
        return self.backend == "bubblewrap"

    @property
    def roots(self) -> Roots:
        """The user's directories. Paths that a policy opens in addition are left out."""
        home, workspace, project = (Path(text_of(one)) for one in (self.home, self.workspace, self.project))
        return Roots(home, workspace, project)

    @property
    def covered_roots(self) -> tuple[Path, ...]:
        return tuple(map(Path, map(text_of, self.covered)))


@dataclass(frozen=True, slots=True)
class Covered:
    """One covered real directory, and the directory with the task's version of it.

    `place`: the upper directory of the overlay (which contains only changed paths), or the copy (which contains all
    paths).
    """

    number: int
    root: Path
    place: Path


@dataclass(frozen=True, slots=True)
class WorkspaceDirectory:
    """The path of one workspace, which may not exist yet. The directory of a fork has the same layout."""

    base: Path

    @property
    def task_id(self) -> str:
        return unquote(self.base.name)

    @property
    def exists(self) -> bool:
        try:
            (self.base / _RECORD).stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    @property
    def scratch(self) -> Path:
        return self.base / "tmp"

    @property
    def base_file(self) -> Path:
        return self.base / "base.jsonl"

    @property
    def manifest(self) -> Path:
        return self.base / "manifest.json"

    @property
    def continues(self) -> Path:
        """Return the file that names an earlier task, if this workspace began with the pending changes of that
        task."""
        return self.base / "continues"

    @property
    def pending(self) -> Path:
        return self.base / "pending.json"

    @property
    def brought(self) -> Path:
        """The file that marks the workspace as a copy of another machine's work, which was made for review. Such a
        copy may be deleted without loss."""
        return self.base / "brought"

    @property
    def is_brought(self) -> bool:
        """True if the workspace holds another machine's work, and no task has worked in it."""
        return self.exists and self.brought.exists()

    @property
    def output(self) -> Path:
        return self.base / "output"

    def upper(self, number: int) -> Path:
        return self.base / "upper" / str(number) / "up"

    def work(self, number: int) -> Path:
        return self.base / "upper" / str(number) / "work"

    def copy(self, number: int) -> Path:
        return self.base / "copy" / str(number)

    def fork(self, name: str) -> WorkspaceDirectory:
        """Return the directory of a fork, in which a second solution is tried."""
        if not name:
            raise SandboxError("a fork needs a name")
        return WorkspaceDirectory(self.base / "forks" / _directory_name(name))

    def trial(self, name: str) -> WorkspaceDirectory:
        """Return the directory of a temporary layer, whose upper directories lie over those of this workspace."""
        return WorkspaceDirectory(self.base / "trials" / _directory_name(name))

    def remove_leftovers(self) -> None:
        """Delete temporary layers and directories that remain after a crash. The caller holds the lock."""
        for name in ("trials", *_LEFTOVERS):
            for left in self.base.glob(name):
                remove_tree(left)

    def record(self) -> WorkspaceRecord:
        """Read the record. Raises OtherFormat, and SandboxError when it is missing or damaged."""
        path = self.base / _RECORD
        try:
            content = path.read_bytes()
            found = _Format.model_validate_json(content).format
            if found != FORMAT:
                raise OtherFormat(_other_format(self.task_id, found))
            return WorkspaceRecord.model_validate_json(content)
        except (OSError, ValidationError) as error:
            raise SandboxError(
                f"the workspace record {path} cannot be read: {error}; keep it and report this"
            ) from error

    def covered(self) -> tuple[Covered, ...]:
        """Return the covered directories whose upper directory or copy exists. Raises SandboxError."""
        if not self.exists:
            return ()
        record = self.record()
        place = self.upper if record.is_overlay else self.copy
        return tuple(
            Covered(number, root, place(number))
            for number, root in enumerate(record.covered_roots)
            if place(number).is_dir()
        )

    def layers(self) -> tuple[Layer, ...]:
        """Return the overlay's layers for a sandbox. Raises SandboxError."""
        return tuple(
            Layer(one.root, one.place, self.work(one.number))
            for one in self.covered()
            if one.place == self.upper(one.number)
        )

    def make(self, backend: BackendName, roots: Roots, covered: Iterable[Path]) -> WorkspaceRecord:
        """Make the directory with its upper directories, and write the record last. Raises OSError (full disk)."""
        record = WorkspaceRecord(
            task_id=self.task_id,
            backend=backend,
            created_at=time.time(),
            home=printable(roots.home),
            workspace=printable(roots.workspace),
            project=printable(roots.project),
            covered=tuple(map(printable, covered)),
        )
        self.base.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.output.mkdir(mode=0o700, exist_ok=True)
        self.make_scratch()
        for number, root in enumerate(record.covered_roots if record.is_overlay else ()):
            self.work(number).mkdir(mode=0o700, parents=True, exist_ok=True)
            make_upper(self.upper(number), root)
        self.write_record(record)
        return record

    def make_scratch(self) -> None:
        """Make the directory that commands see as /tmp. Raises OSError."""
        self.scratch.mkdir(exist_ok=True)
        self.scratch.chmod(0o1777)

    def write_record(self, record: WorkspaceRecord) -> None:
        """Write the record. Raises OSError."""
        write_whole(self.base / _RECORD, record.model_dump_json().encode(), sync=False)

    def remove(self) -> None:
        """Delete the workspace. The record is deleted first, so that a crash leaves no partial workspace.

        The lock file is deleted last. Otherwise a process that waits for it would make a workspace in a directory
        that is being deleted.
        """
        # Without a record the directory counts as empty, even if files are left in it.
        (self.base / _RECORD).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            self.remove_rest()
            (self.base / _LOCK).unlink(missing_ok=True)
            try:
                self.base.rmdir()
            except OSError as error:
                # another process has already made a new lock file in the directory
                if error.errno != errno.ENOTEMPTY:
                    raise

    def discard(self) -> None:
        """Delete the workspace with all changes of the task, even if another version of artoo made it.

        Raises WorkspaceInUse, OSError.
        """
        with self.locked():
            self.remove()

    def remove_rest(self) -> None:
        """Delete everything except the lock file, so that no file of an old workspace appears in the next one."""
        for child in self.base.iterdir():
            if child.name != _LOCK:
                remove_tree(child)

    @contextmanager
    def locked(self, patience: float = 0.0) -> Generator[None]:
        """Hold the lock. Raises WorkspaceInUse after `patience` seconds. Blocking."""
        descriptor = self.lock(patience)
        try:
            yield
        finally:
            os.close(descriptor)

    def lock(self, patience: float = 0.0) -> int:
        """Return a descriptor that holds the lock until it is closed. Raises WorkspaceInUse. Blocking."""
        until = time.monotonic() + patience
        while (descriptor := self._try_lock()) is None:
            if time.monotonic() >= until:
                raise WorkspaceInUse(
                    f"task {self.task_id} is at work in another process: wait for its end, or stop it"
                )
            time.sleep(_BETWEEN_TRIES_SECONDS)
        return descriptor

    def _try_lock(self) -> int | None:
        """Try to lock the file, and return its descriptor or None. A lock on a file that was deleted meanwhile does
        not count."""
        try:
            self.base.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.base / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except (FileExistsError, FileNotFoundError):  # the directory is being deleted at this moment
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:
                return descriptor
        except BlockingIOError:
            pass
        os.close(descriptor)
        return None


class Workspaces:
    """All workspaces below artoo's home. `home` is absolute and without symlinks."""

    def __init__(self, home: Path) -> None:
        self.root = home / "workspaces"

    def directory(self, task_id: str) -> WorkspaceDirectory:
        """Return the directory for the workspace of a task, which may not exist yet."""
        if not task_id:
            raise SandboxError("a workspace needs the id of its task")
        return WorkspaceDirectory(self.root / _directory_name(task_id))

    def find(self, task_id: str) -> WorkspaceDirectory | None:
        """Return the workspace of a task, or None if the task has run no command and written no file."""
        directory = self.directory(task_id)
        return directory if directory.exists else None

    def remembered(self) -> tuple[WorkspaceDirectory, ...]:
        """Return all directories of workspaces, including those whose creation or deletion was interrupted."""
        if not self.root.is_dir():
            return ()
        return tuple(WorkspaceDirectory(child) for child in sorted(self.root.iterdir()) if child.is_dir())

    def listed(self) -> tuple[WorkspaceDirectory, ...]:
        """Return all workspaces of this format, oldest first. Raises SandboxError for a damaged record."""
        found: list[tuple[float, WorkspaceDirectory]] = []
        for directory in self.remembered():
            with suppress(OtherFormat):
                if directory.exists:
                    found.append((directory.record().created_at, directory))
        return tuple(directory for _, directory in sorted(found, key=lambda one: (one[0], one[1].base)))

    def outdated(self) -> tuple[WorkspaceDirectory, ...]:
        """Return the workspaces that another version of artoo made. Only the user can discard them."""
        found: list[WorkspaceDirectory] = []
        for directory in self.remembered():
            try:
                if directory.exists:
                    directory.record()
            except OtherFormat:
                found.append(directory)
        return tuple(found)

    def require_readable(self, task_id: str) -> None:
        """Raise OtherFormat when another version of artoo made this task's workspace."""
        directory = self.directory(task_id)
        if directory.exists:
            directory.record()


def make_upper(upper: Path, model: Path) -> None:
    """Make an empty upper directory with owner, mode and attributes of the real directory `model`.

    Owner, mode and attributes decide who may write. An owner that this user may not set, or an attribute that the
    file system does not support, is left out. The change set does not report them as changes. Raises OSError (full
    disk).
    """
    upper.mkdir(mode=0o700, parents=True, exist_ok=True)
    seen = model.stat()
    with suppress(PermissionError):
        os.chown(upper, seen.st_uid, seen.st_gid)
    for name, value in attributes_of(model):
        with suppress(OSError):
            os.setxattr(upper, name, value)
    upper.chmod(stat.S_IMODE(seen.st_mode))  # last, because setting an access list changes the mode


class _Format(BaseModel):
    model_config = ConfigDict(extra="ignore")

    format: int


def _other_format(task_id: str, found: int) -> str:
    what = "a newer version" if found > FORMAT else "an older version"
    return (
        f"the workspace of task {task_id} was made by {what} of artoo and cannot be read by this one; use that "
        f"version, or delete the task's changes:\nartoo discard {task_id}"
    )


@lru_cache(maxsize=1_024)
def _directory_name(name: str) -> str:
    return quote(name, safe="").replace(".", "%2E")
