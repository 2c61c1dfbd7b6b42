"""The undo record on disk (`manifest.json`), with steps, slots, before-images and lock.

UNDO/lock                     held by the only apply or undo that may run at a time
UNDO/TASK/N/manifest.json     renamed into place and synced before the first path is replaced
UNDO/TASK/N/new/K             the slot of step K. It holds the new content first; after the two are exchanged, it
                              holds the old content, which is the before-image
UNDO/TASK/N/images/K          a copy that is the before-image, if the slot cannot be
UNDO/TASK/N/staging.json      the steps whose slots are next to their targets, because of another file system
UNDO/TASK/N/note              the caller's note, in its own file because the manifest may be long
UNDO/TASK/N/done              exists if the apply took effect completely
UNDO/TASK/N/open              exists until the caller has finished the steps that follow the apply
UNDO/TASK/N/undoing.json      the steps that an undo began to restore
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.errors import SandboxError
from artoo.disk.whole import sync_directory, write_durably, write_whole
from artoo.workspace.fs.names import text_of
from artoo.workspace.fs.stat import NodeState
from artoo.workspace.git.act import GitAct

FORMAT = 2
MANIFEST, STAGING, DONE, UNDOING, OPEN = "manifest.json", "staging.json", "done", "undoing.json", "open"
NOTE = "note"


@dataclass(slots=True)  # not frozen, because making a frozen instance takes twice as long, and thousands are made
class Step:
    """The change of one path from the state `before` to `after`. Paths are printable. Only the field `slot` is set
    later.

    If `after` is a file or a link, the slot first holds its content. When that content is at the path, or the path
    is removed, the slot holds the old content. `image`: true if a copy of the old content is kept in addition to
    the slot. The digests are the sha256 (hex) of file contents, if they are known.
    """

    number: int
    path: str
    before: NodeState | None
    after: NodeState | None
    slot: str = ""
    image: bool = False
    before_sha256: str | None = None
    after_sha256: str | None = None

    @property
    def where(self) -> str:
        """The path in the form that the os module takes."""
        return text_of(self.path)

    @property
    def stays(self) -> bool:
        """True for a directory whose metadata alone change."""
        return is_directory(self.before) and is_directory(self.after)

    @property
    def opens(self) -> bool:
        """True for a directory that only gets write permission for the other steps, and its old mode again
        afterwards."""
        return self.before == self.after

    @property
    def takes_away(self) -> bool:
        """True if the old object must be removed first, because the path is deleted or becomes another kind of
        object."""
        if self.before is None:
            return False
        return self.after is None or self.before.is_directory != self.after.is_directory

    @property
    def makes_directory(self) -> bool:
        return is_directory(self.after) and not is_directory(self.before)

    @property
    def puts(self) -> bool:
        """True if the content of the slot is moved to the path."""
        return self.after is not None and not self.after.is_directory

    @property
    def keeps(self) -> bool:
        """True if a file or link is replaced or removed, so that there is a before-image."""
        return self.before is not None and not self.before.is_directory


def holder_of(path: str) -> str:
    """Return the parent directory of an absolute path. `os.path.dirname` would take four times as long."""
    return path.rpartition("/")[0] or "/"


def is_directory(state: NodeState | None) -> bool:
    return state is not None and state.is_directory


class Manifest(BaseModel):
    """The steps of one apply. `created_at` is in seconds since the epoch."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", defer_build=True, ser_json_bytes="base64", val_json_bytes="base64"
    )

    format: int = FORMAT
    task_id: str
    created_at: float
    steps: tuple[Step, ...]
    git: tuple[GitAct, ...] = ()


class Record:
    """The directory of one apply. `slots`: the directory for slots that are not next to their targets."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.name = f"{place.parent.name}/{place.name}"
        self.slots = f"{place}/new"

    @classmethod
    def begin(cls, undo_home: Path, task_id: str) -> Record:
        """Make a record for the next apply of a task. Raises SandboxError."""
        if not task_id:
            raise SandboxError("an apply needs the identifier of its task, so that it can be undone")
        task = undo_home.resolve() / quote(task_id, safe="").replace(".", "%2E")
        try:
            task.mkdir(mode=0o700, exist_ok=True)
            # Applies of a task are ordered by a number and not by time, because clocks may be set back.
            place = task / f"{max((_number(one) for one in task.iterdir()), default=0) + 1:06d}"
            for path in (place, place / "images", place / "new"):
                path.mkdir(mode=0o700)
            (place / OPEN).touch(mode=0o600)
        except OSError as error:
            raise _no_place(undo_home, error) from error
        return cls(place)

    @property
    def task_id(self) -> str:
        return unquote(self.place.parent.name)

    @property
    def committed(self) -> bool:
        """True if the manifest was written. From then on, paths may have been replaced."""
        return self.has(MANIFEST)

    @property
    def done(self) -> bool:
        """True if the apply took effect."""
        return self.has(DONE) and self.committed

    @property
    def is_open(self) -> bool:
        """True until the caller has finished the steps that follow the apply."""
        return self.has(OPEN)

    def close(self) -> None:
        """Record that the steps that follow the apply are finished. After a power cut these steps may be
        repeated."""
        (self.place / OPEN).unlink(missing_ok=True)

    def has(self, name: str) -> bool:
        return (self.place / name).exists()

    @property
    def note(self) -> str:
        """The caller's note. It is empty for a record that only holds the remains of a roll-back. Raises
        OSError."""
        try:
            return (self.place / NOTE).read_text("utf-8")
        except FileNotFoundError:
            return ""

    def image(self, step: Step) -> str:
        """Return the path of the copied before-image of a step."""
        return f"{self.place}/images/{step.number}"

    def manifest(self, name: str = MANIFEST) -> Manifest:
        """Read the manifest, or another file of the same format. Raises SandboxError if it is damaged."""
        path = self.place / name
        try:
            manifest = Manifest.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is damaged"
            kept = f"the before-images are in {self.place}; do not delete them"
            raise SandboxError(f"the manifest {path} cannot be read ({why}); {kept}") from error
        if manifest.format != FORMAT:
            raise SandboxError(f"the manifest {path} has format {manifest.format}; use the artoo that wrote it")
        return manifest

    def problem(self) -> str | None:
        """Return why the record cannot be undone; None if it can."""
        try:
            self.manifest()
        except SandboxError as error:
            return str(error)
        return None

    def write(self, name: str, manifest: Manifest, *, durably: bool = True) -> None:
        """Write a file in the format of the manifest. Writing the file `manifest.json` makes the record committed.

        If `durably` is false, the file is either complete or missing after a power cut.
        """
        (write_durably if durably else write_whole)(self.place / name, manifest.model_dump_json().encode("utf-8"))

    def mark_done(self) -> None:
        """Record durably that the apply took effect."""
        os.close(os.open(self.place / DONE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        sync_directory(self.place)

    def unmark(self, *names: str) -> None:
        """Delete files of the record durably."""
        for name in names:
            (self.place / name).unlink(missing_ok=True)
        sync_directory(self.place)

    def keep_only(self, manifest: Manifest) -> None:
        """Replace the manifest by one with only the parts that can still be undone later. Raises OSError."""
        self.write(MANIFEST, manifest)
        self.mark_done()
        self.unmark(UNDOING, OPEN)

    def forget(self) -> None:
        """Delete the record. If a crash interrupts this, the remains are never restored. Raises OSError."""
        self.unmark(MANIFEST)
        # the modes are not changed first, because a before-image may be a hard link to a user's file
        shutil.rmtree(self.place)


def all_records(undo_home: Path) -> list[Record]:
    """Return all records, each task's oldest first."""
    tasks = sorted(task for task in undo_home.iterdir() if task.is_dir()) if undo_home.is_dir() else []
    places = [sorted((one for one in task.iterdir() if one.is_dir()), key=_number) for task in tasks]
    return [Record(place.resolve()) for found in places for place in found]


def records_of(undo_home: Path, task_id: str) -> list[Record]:
    """Return the committed records of one task, oldest first. The record of an interrupted apply is not `done`."""
    return [one for one in all_records(undo_home) if one.task_id == task_id and one.committed]


def tasks_with_records(artoo_home: Path) -> list[str]:
    """Return the ids of all tasks that have records of applies."""
    return list(dict.fromkeys(record.task_id for record in all_records(artoo_home / "undo")))


def _number(place: Path) -> int:
    """Return the number that orders a task's records."""
    return int(place.name) if place.name.isdecimal() else 0


@contextmanager
def exclusive(undo_home: Path) -> Generator[None]:
    """Hold the lock on all records of the user, so that one apply or undo runs at a time. A crash releases it."""
    try:
        undo_home.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(undo_home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _no_place(undo_home, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _no_place(undo_home: Path, error: OSError) -> SandboxError:
    return SandboxError(
        f"nothing was changed: {undo_home}, where before-images are kept, cannot be written ({error.strerror});"
        " free space, or check its permissions"
    )
