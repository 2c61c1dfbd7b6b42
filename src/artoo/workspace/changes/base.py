"""What the user's files were when a task first changed them: the base against which conflicts are found.

`base.jsonl` has one JSON object a line. A line of a path is the user's version as the task found it; the first line
of a path counts. `absent` lists paths that were not there; such a path has no base. `looked_ns` says when the
user's files were last compared: what the user changed after that, in a path that the task had changed by the next
look, may be the version that the task saw or not (`overtaken`). A last line that a crash cut is ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.changes import Node, path_bytes
from artoo.contracts.errors import SandboxError
from artoo.disk.whole import write_whole
from artoo.workspace.changes.manifest import Entry, stamp_of
from artoo.workspace.changes.time_window import Moment, TimeWindow
from artoo.workspace.directory import WorkspaceDirectory
from artoo.workspace.files.beneath import open_beneath
from artoo.workspace.files.rooted import locate_real
from artoo.workspace.fs.stat import PASS_FLAGS, NodeState, digest_file, read_state


class Base(BaseModel):
    """One path of the user's, absolute and printable, as the task found it.

    `sha256` (hex) of a file's content; None for what is no file, or could not be read. `overtaken`: the user
    changed it while the task did, and nobody knows which version the task saw.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", defer_build=True, ser_json_bytes="base64", val_json_bytes="base64"
    )

    path: str
    was: NodeState
    sha256: str | None = None
    overtaken: bool = False


class _Look(BaseModel):
    """What one look noted besides bases."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    looked_ns: int = 0
    absent: tuple[str, ...] = ()


class BaseBook:
    """The bases of one workspace, and the time of the last look. Blocking; used by one thread at a time."""

    def __init__(self, file: Path, began: Moment) -> None:
        self._file = file
        self._inode = 0
        self._looked = began
        self._absent: set[str] = set()
        self.bases: dict[str, Base] = {}

    def load(self) -> None:
        """Read the file if it was not read yet, or was replaced meanwhile (`rebase`). Raises SandboxError."""
        try:
            inode = self._file.stat().st_ino
        except FileNotFoundError:
            return
        if inode != self._inode:
            self.bases, look = _read(self._file)
            self._absent = set(look.absent)
            if not self._inode and look.looked_ns:  # after a restart
                self._looked = Moment(look.looked_ns, None)
            self._inode = inode

    def look(self, paths: Iterable[tuple[str, Entry | None]], now: Moment | None) -> None:
        """Record the user's version of each path that the task changed, and that was not recorded before.

        `paths` are printable; of copies each comes with its manifest entry: the version that was copied. `now`: the
        time before the paths were listed; None: the look is not at its end. Raises OSError (full disk); then
        nothing is recorded.
        """
        self.load()
        self._record(paths, self._looked.until(Moment.now()), now)
        self._looked = now or self._looked

    def record(self, paths: Iterable[str]) -> None:
        """Record the user's versions of printable paths that artoo is about to write itself: nothing overtakes it.

        Raises OSError (full disk); then nothing is recorded.
        """
        self.load()
        self._record(((path, None) for path in paths), TimeWindow(0, 0), None)

    def _record(self, paths: Iterable[tuple[str, Entry | None]], window: TimeWindow, now: Moment | None) -> None:
        bases: list[Base] = []
        absent: list[str] = []
        with UserFiles() as files:
            for path, copied in paths:
                if path not in self.bases and path not in self._absent:
                    base = _base_of(files, path, copied, window)
                    absent.append(path) if base is None else bases.append(base)
        told = [base.model_dump_json().encode() for base in bases]
        if absent or now is not None:
            told.append(json.dumps({"looked_ns": now.wall_ns if now is not None else 0, "absent": absent}).encode())
        if told:
            append_lines(self._file, told)
        self.bases.update((base.path, base) for base in bases)
        self._absent.update(absent)
        self._inode = self._file.stat().st_ino


class UserFiles:
    """Reads the user's files one after the other, and keeps the last one's directory open for the next."""

    def __init__(self) -> None:
        self._at: str | None = None
        self._descriptor = -1

    def read(self, path: str) -> NodeState | None:
        """Return the state of a printable path; None where nothing is."""
        name = self._go(path)
        return None if name is None else read_state(self._descriptor, name)

    def digest(self, path: str, state: NodeState) -> str | None:
        """Return the sha256 of a file; None for what is none, or cannot be read: then inode and times must do."""
        name = self._go(path)
        if name is None or state.node is not Node.FILE:
            return None
        try:
            return digest_file(self._descriptor, name, state.size)
        except OSError:
            return None

    def _go(self, path: str) -> str | None:
        """Open the directory that holds a path; return the path's name, or None if there is no such directory."""
        above, _, name = os.fsdecode(path_bytes(path)).rpartition("/")
        if above != self._at:
            self.close()
            self._at = above
            try:
                self._descriptor = open_beneath(*locate_real(above or "/"), PASS_FLAGS)
            except OSError:
                self._descriptor = -1
        return name if self._descriptor >= 0 else None

    def close(self) -> None:
        """Close the directory."""
        descriptor, self._descriptor, self._at = self._descriptor, -1, None
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> UserFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _base_of(files: UserFiles, path: str, copied: Entry | None, window: TimeWindow) -> Base | None:
    state = files.read(path)
    if state is None:
        return None
    if copied is not None:
        same = copied.source == stamp_of(state)
        return Base(path=path, was=state, sha256=files.digest(path, state) if same else None, overtaken=not same)
    overtaken = not state.is_directory and state.ctime_ns in window
    return Base(path=path, was=state, sha256=files.digest(path, state), overtaken=overtaken)


def read_base(file: Path) -> dict[str, Base]:
    """Return the bases by path. Raises SandboxError when a line in the middle is damaged."""
    return _read(file)[0]


def _read(file: Path) -> tuple[dict[str, Base], _Look]:
    try:
        lines = file.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}, _Look()
    except OSError as error:
        raise SandboxError(f"{file} cannot be read: {error.strerror}") from error
    found: dict[str, Base] = {}
    looked, absent = 0, list[str]()
    for number, line in enumerate(lines[:-1]):  # a crash cut what comes after the last line end
        try:
            if line.startswith(b'{"path"'):
                base = Base.model_validate_json(line)
                found.setdefault(base.path, base)
            else:
                look = _Look.model_validate_json(line)
                looked, absent = max(looked, look.looked_ns), [*absent, *look.absent]
        except ValidationError as error:
            raise SandboxError(f"{file}, line {number + 1} is damaged: {error}; keep it and report this") from error
    return found, _Look(looked_ns=looked, absent=tuple(absent))


def append_base(file: Path, bases: Iterable[Base]) -> None:
    """Add bases in one write. Raises OSError (full disk); then nothing was added."""
    append_lines(file, [base.model_dump_json().encode() for base in bases])


def append_lines(file: Path, lines: Collection[bytes]) -> None:
    """Add lines in one write, after a line that a crash cut. Raises OSError (full disk); then nothing was added."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            size = os.pread(descriptor, size, 0).rfind(b"\n") + 1
            os.ftruncate(descriptor, size)
        left = memoryview(b"".join(line + b"\n" for line in lines))
        try:
            while left:
                left = left[os.write(descriptor, left) :]
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def rebase(directory: WorkspaceDirectory, paths: Collection[str]) -> None:
    """Make the user's files as they are now the base of these printable paths, after they were applied.

    The task's version, which may stay in the workspace, is then no change. Raises OSError, SandboxError.
    """
    bases, look = _read(directory.base_file)
    absent = set(look.absent).difference(paths)
    with UserFiles() as files:
        for path in paths:
            state = files.read(path)
            if state is None:
                bases.pop(path, None)
                absent.add(path)
            else:
                bases[path] = Base(path=path, was=state, sha256=files.digest(path, state))
    lines = [base.model_dump_json().encode() for base in bases.values()]
    lines.append(json.dumps({"looked_ns": look.looked_ns, "absent": sorted(absent)}).encode())
    write_whole(directory.base_file, b"\n".join(lines) + b"\n")


def same_version(was: NodeState, now: NodeState) -> bool:
    """True if inode, size and times are equal: the file was not written in between."""
    return (was.inode, was.device, was.size, was.mtime_ns, was.ctime_ns) == (
        now.inode,
        now.device,
        now.size,
        now.mtime_ns,
        now.ctime_ns,
    )


def user_changes(bases: Iterable[Base]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield printable paths of files whose user's version is not the base, with its inode and time of change."""
    with UserFiles() as files:
        for base in bases:
            if base.was.is_directory:
                continue
            state = files.read(base.path)
            if state is None:
                yield base.path, (0, 0)
            elif base.overtaken or not (same_version(base.was, state) or _is_equal(files, base, state)):
                yield base.path, (state.inode, state.ctime_ns)


def _is_equal(files: UserFiles, base: Base, state: NodeState) -> bool:
    return state.same_metadata(base.was) and files.digest(base.path, state) == base.sha256
