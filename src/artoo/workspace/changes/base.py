"""Record the user's version of each changed path (`base.jsonl`), for the detection of conflicts.

This recorded version is the merge base: the user's present version and the task's version are each compared with
it.

`base.jsonl` has one JSON object per line. The first line for a path holds the version of the user that the task
found. `absent` lists paths that did not exist. The modification time of `base.jsonl` is the time of the last
comparison with the user's files. If the user changed a path after that time, and the task changed it before the
next comparison, it is unknown which version the task saw (`overtaken`). A last line that a crash truncated is
ignored.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.errors import SandboxError
from artoo.disk.whole import write_whole
from artoo.workspace.directory import WorkspaceDirectory
from artoo.workspace.files.layered import offline_files
from artoo.workspace.files.walker import Walker
from artoo.workspace.fs.names import printable, text_of
from artoo.workspace.fs.stat import NodeState

Key = tuple[int, str]
"""The number of a covered directory, and a path below it. The path is empty for the covered directory itself."""

Stamp = tuple[int, ...]
"""The metadata by which a change of a file is noticed. Every change, even of a mode, updates the ctime."""


def stamp_of(state: NodeState) -> Stamp:
    """Return the stamp of a state. A directory's times are left out, because they change with its entries."""
    if state.is_directory:
        return (state.mode, state.uid, state.gid)
    return (state.mode, state.uid, state.gid, state.device, state.inode, state.size, state.mtime_ns, state.ctime_ns)


class BaseEntry(NamedTuple):
    """The entry of one path in a copy, with the stamp of the user's version and the stamp of the fresh copy."""

    source: Stamp
    copy: Stamp


@dataclass(slots=True)
class BaseManifest:
    """The entries of all paths in the copies of one workspace. The file `manifest.json` is a list of [number,
    printable path, source, copy]."""

    file: Path
    entries: dict[Key, BaseEntry] = field(default_factory=dict[Key, BaseEntry])

    @classmethod
    def read(cls, file: Path) -> BaseManifest:
        """Read the file. A missing file counts as empty. Raises SandboxError when it is damaged."""
        manifest = cls(file)
        try:
            for number, path, source, copy in json.loads(file.read_bytes()):
                key = (number, text_of(path))
                manifest.entries[key] = BaseEntry(tuple(source), tuple(copy))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError) as error:
            raise SandboxError(f"the manifest {file} cannot be read ({error}); keep it and report this") from error
        return manifest

    def is_changed(self, key: Key, state: NodeState) -> bool:
        """True if a path in the copy differs from its state right after copying."""
        entry = self.entries.get(key)
        return entry is None or entry.copy != stamp_of(state)

    def save(self) -> None:
        """Write the file. Raises OSError (full disk)."""
        listed = [(number, printable(path), *entry) for (number, path), entry in self.entries.items()]
        write_whole(self.file, json.dumps(listed, separators=(",", ":")).encode(), sync=False)


_CLOCK = getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME)
"""The clock of file times. This clock advances in ticks of up to 4 ms."""


class Base(BaseModel):
    """The state of one of the user's paths (absolute, printable) when the task first changed it.

    `sha256`: digest (hex) of a file's content. It is None for other objects, and for a file that could not be read.
    `overtaken`: true if the user and the task changed the path at the same time, so that it is unknown which
    version the task saw. `applied`: true if this is the task's own version, which was applied while the task
    continued.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", defer_build=True, ser_json_bytes="base64", val_json_bytes="base64"
    )

    path: str
    was: NodeState
    sha256: str | None = None
    overtaken: bool = False
    applied: bool = False


class _Absent(BaseModel):
    model_config = ConfigDict(extra="ignore", defer_build=True)

    absent: tuple[str, ...] = ()


class BaseBook:
    """The bases of one workspace, and the time of the last comparison. Blocking; used by one thread at a time.

    `bases`: the base of each printable path. None stands for a path that did not exist.
    """

    def __init__(self, file: Path, began_ns: int) -> None:
        self._file = file
        self._inode = 0
        self._looked_ns = began_ns
        self.bases: dict[str, Base | None] = {}

    def load(self) -> None:
        """Read the file if it was not read yet, or was replaced since (`rebase`). Raises SandboxError."""
        try:
            seen = self._file.stat()
        except FileNotFoundError:
            return
        if seen.st_ino != self._inode:
            self.bases = _read(self._file)
            if not self._inode:  # the file is read for the first time in this process
                self._looked_ns = seen.st_mtime_ns
            self._inode = seen.st_ino

    def look(self, paths: Iterable[tuple[str, BaseEntry | None]], now_ns: int | None) -> None:
        """Record the user's version of each path that the task changed and that was not recorded before.

        `paths`: printable paths. For a path in a copy, the manifest entry is given too. `now_ns`: the time before
        the paths were listed. It is None if the caller will pass more paths of the same listing. If it raises
        OSError (full disk), nothing is recorded.
        """
        self._record(paths, self._looked_ns, now_ns or self._looked_ns)

    def record(self, paths: Iterable[str]) -> None:
        """Record the user's versions of printable paths that artoo will write itself. These bases are never
        `overtaken`.

        If it raises OSError (full disk), nothing is recorded.
        """
        self._record(((path, None) for path in paths), None, self._looked_ns)

    def _record(self, paths: Iterable[tuple[str, BaseEntry | None]], since_ns: int | None, looked_ns: int) -> None:
        self.load()
        found: dict[str, Base | None] = {}
        with Walker() as files:
            for path, copied in paths:
                # A version that was recorded earlier is kept, because the task may have built on it.
                if path not in self.bases:
                    found[path] = _base_of(files, path, copied, since_ns)
        append_lines(self._file, _lines(found))
        # The time of the last comparison is the file's mtime, so a comparison without changes writes no line.
        os.utime(self._file, ns=(looked_ns, looked_ns))
        self.bases |= found
        self._looked_ns, self._inode = looked_ns, self._file.stat().st_ino


def _base_of(files: Walker, path: str, copied: BaseEntry | None, since_ns: int | None) -> Base | None:
    real = text_of(path)
    state = files.read(real)
    if state is None:
        return None
    if copied is not None:
        overtaken = copied.source != stamp_of(state)
    else:
        overtaken = since_ns is not None and not state.is_directory and state.ctime_ns > since_ns
    return Base(path=path, was=state, sha256=files.digest(real, state), overtaken=overtaken)


def _lines(bases: dict[str, Base | None]) -> list[bytes]:
    absent = [path for path, base in bases.items() if base is None]
    lines = [base.model_dump_json().encode() for base in bases.values() if base is not None]
    return [*lines, json.dumps({"absent": absent}).encode()] if absent else lines


def read_base(file: Path) -> dict[str, Base]:
    """Return the bases by path. Raises SandboxError when a line in the middle is damaged."""
    return {path: base for path, base in _read(file).items() if base is not None}


def _read(file: Path) -> dict[str, Base | None]:
    try:
        lines = file.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SandboxError(f"{file} cannot be read: {error.strerror}") from error
    found: dict[str, Base | None] = {}
    for number, line in enumerate(lines[:-1]):  # text after the last newline was truncated by a crash
        try:
            if line.startswith(b'{"path"'):
                base = Base.model_validate_json(line)
                found.setdefault(base.path, base)
            else:
                for path in _Absent.model_validate_json(line).absent:
                    found.setdefault(path, None)
        except ValidationError as error:
            raise SandboxError(f"{file}, line {number + 1} is damaged: {error}; keep it and report this") from error
    return found


def append_lines(file: Path, lines: Collection[bytes]) -> None:
    """Append lines. A truncated last line of the file is removed first. If it raises OSError (full disk), nothing
    was added."""
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


def rebase(directory: WorkspaceDirectory, paths: Iterable[str]) -> None:
    """Make the applied versions of these printable paths their base.

    The task's versions of these paths may stay in the workspace. They then count as unchanged by the task, even if
    the user has changed the paths since. Raises OSError, SandboxError.
    """
    found: dict[str, Base | None] = {}
    with closing(offline_files(directory)) as left, Walker() as users, Walker(left.locate) as tasks:
        for path in paths:
            version, now = _version(tasks, path), _version(users, path)
            same = version is not None and now is not None and _is_equal(version, now)
            found[path] = now if same else version
    replace_bases(directory.base_file, found)


def _is_equal(one: Base, other: Base) -> bool:
    content = (one.was.node, one.was.target, one.sha256) == (other.was.node, other.was.target, other.sha256)
    return content and one.was.same_metadata(other.was)


def _version(files: Walker, path: str) -> Base | None:
    real = text_of(path)
    state = files.read(real)
    return None if state is None else Base(path=path, was=state, sha256=files.digest(real, state), applied=True)


def replace_bases(file: Path, new: Mapping[str, Base | None]) -> None:
    """Replace the bases of some printable paths. Raises OSError, SandboxError."""
    bases = {**_read(file), **new}
    looked_ns = file.stat().st_mtime_ns if file.exists() else now_ns()
    write_whole(file, b"".join(line + b"\n" for line in _lines(bases)))
    os.utime(file, ns=(looked_ns, looked_ns))


def same_version(was: NodeState, now: NodeState) -> bool:
    """True if inode, size and times are equal, which means that the file was not written in between."""
    return (was.inode, was.device, was.size, was.mtime_ns, was.ctime_ns) == (
        now.inode,
        now.device,
        now.size,
        now.mtime_ns,
        now.ctime_ns,
    )


def user_changes(bases: Iterable[Base]) -> Iterator[tuple[Base, NodeState | None]]:
    """Yield the base and the present state of each file that the user has changed since the base."""
    with Walker() as files:
        for base in bases:
            if base.was.is_directory:
                continue
            path = text_of(base.path)
            state = files.read(path)
            if state is not None and not base.overtaken and same_version(base.was, state):
                continue
            equal = state is not None and state.same_metadata(base.was) and not base.overtaken
            if state is None or not equal or files.digest(path, state) != base.sha256:
                yield base, state


def now_ns() -> int:
    """Return the present time by the clock that sets file times."""
    return time.clock_gettime_ns(_CLOCK)


def after_tick_ns() -> int:
    """Wait until the clock of file times has reached the present time, and return its time.

    Otherwise a file that the user has just written could seem to be written after the time that is returned.
    """
    until = time.time_ns()
    while (now := now_ns()) < until and until - now < 50_000_000:
        time.sleep(0.001)
    return now
