"""How tools write files: one small interface, so that the Law 1 gate replaces create-only writing without them.

write_file ──► FileWriter ──► CreateOnly      new files only; never replaces what is there
                          └──► the gate's writer
"""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from artoo.contracts.changes import PathClass
from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallEffects, CallStatus
from artoo.ports.sandbox import Roots
from artoo.tools.paths import printable, shown
from artoo.tools.threads import in_thread
from artoo.tools.tool import Outcome
from artoo.tools.under_way import goes_out
from artoo.world.classify import Places

_FREE = (PathClass.PROJECT, PathClass.WORKSPACE)
_Stamp = tuple[int, int, int, int]


class FileWriter(Protocol):
    """Writes one file and settles what that changes."""

    async def write(self, path: Path, content: bytes) -> Outcome:
        """`changes` names what was made or replaced. Raises ToolError when it cannot be written."""
        ...


@dataclass(slots=True)
class CreateOnly:
    """Makes new files in project and workspace; replaces only what this task made and nobody touched since.

    One per task: it remembers what the task made.
    """

    roots: Roots
    places: Places
    _made: dict[Path, _Stamp] = field(default_factory=dict[Path, _Stamp])

    async def write(self, path: Path, content: bytes) -> Outcome:
        """Raises ToolError when the disk does not let it."""
        await goes_out(CallEffects.OUTSIDE)  # nothing is journalled here
        return await in_thread(self._write, path, content)

    def _write(self, path: Path, content: bytes) -> Outcome:
        place = Path(os.path.realpath(path.parent)) / path.name
        if refusal := self._refusal(place):
            return Outcome(status=CallStatus.REFUSED, reason=refusal)
        if os.path.lexists(place) and self._made.get(place) != _stamp(place):
            return self._exists(place, content)
        try:
            made = _make_parents(place.parent)
            replaced = place in self._made and os.path.lexists(place)
            _write_atomically(place, content, replace=replaced)
        except FileExistsError:
            return self._exists(place, content)
        except OSError as error:
            raise ToolError(f"cannot write {shown(place, self.roots)}: {error.strerror}") from error
        stamp = _stamp(place)
        if stamp is not None:
            self._made[place] = stamp
        verb = "replaced" if replaced else "created"
        lines = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
        return Outcome(
            output=f"{verb} {shown(place, self.roots)} ({len(content)} bytes, lines: {lines})",
            changes=(*(printable(folder) for folder in made), printable(place)),
        )

    def _refusal(self, place: Path) -> str | None:
        where = self.places.classify(os.fsencode(place))
        if where in _FREE:
            return None
        name = shown(place, self.roots)
        if where in (PathClass.HOME, PathClass.OUTSIDE):
            return f"{name} is outside the project and the workspace; new files go to one of them"
        return f"{name} is a {where} path; it is not written without a confirmation"

    def _exists(self, place: Path, content: bytes) -> Outcome:
        name = shown(place, self.roots)
        if _holds(place, content):
            return Outcome(output=f"{name} is already there with exactly this content", ran="nothing was written")
        what = "a directory" if place.is_dir() and not place.is_symlink() else "already there"
        reason = f"{name} is {what} and is not replaced, this tool only creates; use another name"
        return Outcome(status=CallStatus.REFUSED, reason=reason, dropped=(printable(place),))


def _make_parents(folder: Path) -> list[Path]:
    """Makes missing directories, outermost first, and returns those made. Raises OSError."""
    missing: list[Path] = []
    current = folder
    while not os.path.lexists(current):
        missing.append(current)
        current = current.parent
    made: list[Path] = []
    for directory in reversed(missing):
        with contextlib.suppress(FileExistsError):
            directory.mkdir()
            made.append(directory)
    return made


def _write_atomically(place: Path, content: bytes, *, replace: bool) -> None:
    """All of the content under the name, or nothing. Raises FileExistsError when it may not be replaced."""
    temporary = place.parent / f".artoo-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        _write_whole(temporary, flags, content)
        if replace:
            temporary.replace(place)
        else:
            _link_or_create(temporary, place, flags, content)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(place.parent)


def _link_or_create(temporary: Path, place: Path, flags: int, content: bytes) -> None:
    """Gives the file its name, which must be free: a link fails where a rename would replace.

    File systems without links get the second best: an exclusive create, removed again when it cannot be finished.
    """
    try:
        place.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:
        try:
            _write_whole(place, flags, content)
        except FileExistsError:
            raise
        except OSError:
            place.unlink(missing_ok=True)
            raise


def _write_whole(path: Path, flags: int, content: bytes) -> None:
    with os.fdopen(os.open(path, flags, 0o666), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(folder: Path) -> None:
    """Makes the new name durable, where the file system can do that."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _stamp(path: Path) -> _Stamp | None:
    """What tells a file from another, and from its own later versions."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _holds(path: Path, content: bytes) -> bool:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size != len(content):
            return False
        return path.read_bytes() == content
    except OSError:
        return False
