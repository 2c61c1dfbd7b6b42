"""What the user's files were when a task first changed them: the base against which conflicts are found.

`base.jsonl` has one JSON object a line. A line of a path is the user's version as the task found it; the first line
of a path counts. A line with `looked_ns` says when the user's files were last compared: what the user changed after
that, in a path that the task had changed by the next look, may be the version that the task saw or not
(`overtaken`). A path without a line was not there. A last line that a crash cut is ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.changes import Node, path_bytes
from artoo.contracts.errors import SandboxError
from artoo.disk.whole import write_whole
from artoo.workspace.changes.manifest import Entry, stamp_of
from artoo.workspace.changes.time_window import Moment, TimeWindow
from artoo.workspace.directory import WorkspaceDirectory
from artoo.workspace.files.beneath import open_parent
from artoo.workspace.files.rooted import locate_real
from artoo.workspace.fs.stat import NodeState, digest_file, read_state


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


class BaseBook:
    """The bases of one workspace, and the time of the last look. Blocking; used by one thread at a time."""

    def __init__(self, file: Path, began: Moment) -> None:
        self._file = file
        self._inode: int | None = None
        self._looked = began
        self.bases: dict[str, Base] = {}

    def load(self) -> None:
        """Read the file if another process replaced it, or if it was not read yet. Raises SandboxError."""
        try:
            inode = self._file.stat().st_ino
        except FileNotFoundError:
            inode = None
        if inode is None or inode == self._inode:
            return
        bases, looked_ns = _read(self._file)
        self.bases, self._inode = bases, inode
        if looked_ns is not None and self._looked.wall_ns < looked_ns:
            self._looked = Moment(looked_ns, None)

    def resume(self) -> None:
        """Continue after a restart: the last look is the one on disk. Raises SandboxError."""
        self.load()
        _, looked_ns = _read(self._file)
        if looked_ns is not None:
            self._looked = Moment(looked_ns, None)

    def look(self, paths: Iterable[tuple[str, Entry | None]], now: Moment) -> None:
        """Record the user's version of each path that the task changed and that has no base yet.

        `paths` are printable; of copies each comes with its manifest entry: the version that was copied. `now`: the
        time before the list of paths was read. Raises OSError (full disk); then nothing is recorded.
        """
        self.load()
        window = self._looked.until(Moment.now())
        new = ((path, copied) for path, copied in paths if path not in self.bases)
        found = [base for path, copied in new if (base := _base_of(path, copied, window)) is not None]
        self._add(found, json.dumps({"looked_ns": now.wall_ns}).encode())
        self._looked = now

    def record(self, paths: Iterable[str]) -> None:
        """Record the user's versions of printable paths that artoo is about to write itself: nothing overtakes it.

        Raises OSError (full disk); then nothing is recorded.
        """
        self.load()
        new = (path for path in paths if path not in self.bases)
        found = [base for path in new if (base := _base_of(path, None, TimeWindow(0, 0))) is not None]
        if found:
            self._add(found)

    def _add(self, bases: Sequence[Base], *lines: bytes) -> None:
        told = [base.model_dump_json().encode() for base in bases]
        _append(self._file, b"\n".join((*told, *lines)) + b"\n")
        self.bases.update((base.path, base) for base in bases)
        self._inode = self._file.stat().st_ino


def _base_of(path: str, copied: Entry | None, window: TimeWindow) -> Base | None:
    state, digest = _user_version(path, digest=True)
    if state is None:
        return None
    if copied is not None:
        same = copied.source == stamp_of(state)
        return Base(path=path, was=state, sha256=digest if same else None, overtaken=not same)
    return Base(path=path, was=state, sha256=digest, overtaken=not state.is_directory and state.ctime_ns in window)


def _user_version(path: str, *, digest: bool) -> tuple[NodeState | None, str | None]:
    try:
        parent, name = open_parent(*locate_real(os.fsdecode(path_bytes(path))))
    except OSError:
        return None, None
    try:
        state = read_state(parent, name)
        if state is None or state.node is not Node.FILE or not digest:
            return state, None
        try:
            return state, digest_file(parent, name, state.size)
        except OSError:  # unreadable, or gone meanwhile: then its inode and times must do
            return state, None
    finally:
        os.close(parent)


def read_base(file: Path) -> dict[str, Base]:
    """Return the bases by path. Raises SandboxError when a line in the middle is damaged."""
    return _read(file)[0]


def _read(file: Path) -> tuple[dict[str, Base], int | None]:
    try:
        lines = file.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}, None
    except OSError as error:
        raise SandboxError(f"{file} cannot be read: {error.strerror}") from error
    found: dict[str, Base] = {}
    looked: int | None = None
    for number, line in enumerate(lines[:-1]):  # a crash cut what comes after the last line end
        try:
            if line.startswith(b'{"looked_ns"'):
                looked = int(json.loads(line)["looked_ns"])
            elif line:
                base = Base.model_validate_json(line)
                found.setdefault(base.path, base)
        except (ValidationError, ValueError, KeyError) as error:
            raise SandboxError(f"{file}, line {number + 1} is damaged: {error}; keep it and report this") from error
    return found, looked


def append_base(file: Path, bases: Iterable[Base]) -> None:
    """Add lines in one write. Raises OSError (full disk); then nothing was added."""
    _append(file, b"".join(base.model_dump_json().encode() + b"\n" for base in bases))


def rebase(directory: WorkspaceDirectory, paths: Collection[str]) -> None:
    """Make the user's files as they are now the base of these printable paths, after they were applied.

    The task's version, which may stay in the workspace, is then no change. Raises OSError, SandboxError.
    """
    bases, looked = _read(directory.base_file)
    for path in paths:
        state, digest = _user_version(path, digest=True)
        if state is None:
            bases.pop(path, None)
        else:
            bases[path] = Base(path=path, was=state, sha256=digest)
    lines = [base.model_dump_json().encode() for base in bases.values()]
    lines.append(json.dumps({"looked_ns": Moment.now().wall_ns if looked is None else looked}).encode())
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
    for base in bases:
        if base.was.is_directory:
            continue
        state, _ = _user_version(base.path, digest=False)
        if state is None or base.overtaken or _is_changed(base, state):
            yield base.path, (0, 0) if state is None else (state.inode, state.ctime_ns)


def _is_changed(base: Base, state: NodeState) -> bool:
    if same_version(base.was, state):
        return False
    _, digest = _user_version(base.path, digest=True)
    return digest != base.sha256 or not state.same_metadata(base.was) or state.node is not base.was.node


def _append(file: Path, data: bytes) -> None:
    if not data:
        return
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        whole = _cut_to_whole_lines(descriptor)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
        except OSError:
            os.ftruncate(descriptor, whole)
            raise
    finally:
        os.close(descriptor)


def _cut_to_whole_lines(descriptor: int) -> int:
    """Cut off the part of a line that a crash left; return the length."""
    size = os.fstat(descriptor).st_size
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return size
    content = os.pread(descriptor, size, 0)
    whole = content.rfind(b"\n") + 1
    os.ftruncate(descriptor, whole)
    return whole
