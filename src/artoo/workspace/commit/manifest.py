"""The record of one apply on disk: what every path was and is to be, and where the before-images lie.

UNDO/lock                          one apply or undo at a time
UNDO/TASK/N/manifest.json          renamed into place and synced before the first path is replaced
UNDO/TASK/N/images/K               the before-image of step K: the old file by another name, or a copy
UNDO/TASK/N/new/K                  the slot of step K: its new content at first, then what came out of its place
UNDO/TASK/N/slots.json             slots that lie next to their targets, because those are on another file system
UNDO/TASK/N/modes.json             read-only directories that are writable while artoo works in them
UNDO/TASK/N/done                   the apply took effect completely
UNDO/TASK/N/undoing.json           paths that an undo began to restore
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from artoo.contracts.changes import path_bytes, printable_path
from artoo.contracts.errors import SandboxError
from artoo.disk.whole import sync_directory, write_durably
from artoo.workspace.commit.dirfd_ops import Location
from artoo.workspace.fs.stat import NodeState
from artoo.workspace.git.act import GitAct

FORMAT = 1
MANIFEST, _DONE, _UNDOING, OLD_JOURNAL = "manifest.json", "done", "undoing.json", "journal.json"
_PATHS = TypeAdapter(frozenset[str])


def text_of(printable: str) -> str:
    """Return a printable path as Python's os functions take it."""
    return printable if "\\" not in printable and printable.isascii() else os.fsdecode(path_bytes(printable))


def printable(path: str | Path) -> str:
    """Return a path as printable text."""
    return printable_path(os.fsencode(path))


@dataclass(slots=True)  # not frozen: that takes twice as long to make, and thousands are made at once
class Step:
    """One path of an apply. `root` and `path` are printable; nobody changes a step.

    `before` is the user's version, `after` the new one, with the inode of the staged file. `image`: there is a
    before-image. The digests are the sha256 (hex) of file contents, where they are known.
    """

    number: int
    root: str
    path: str
    before: NodeState | None
    after: NodeState | None
    in_place: bool = False
    image: bool = False
    before_sha256: str | None = None
    after_sha256: str | None = None

    @property
    def where(self) -> Location:
        """Where it is, for the file system."""
        return Location(text_of(self.root), text_of(self.path[len(self.root) :].lstrip("/")))


class Manifest(BaseModel):
    """One apply. `created_at` is in seconds since the epoch; `note` is the caller's.

    `beside`: all slots lie next to their targets, because the file system refused to rename files from here.
    `rest`: no apply that took effect; only paths that a roll-back could not restore are left, for a later undo.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", defer_build=True, ser_json_bytes="base64", val_json_bytes="base64"
    )

    format: int = FORMAT
    task_id: str
    created_at: float
    steps: tuple[Step, ...]
    git: tuple[GitAct, ...] = ()
    note: str = ""
    beside: bool = False
    rest: bool = False


class Record:
    """The directory of one apply."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.name = f"{place.parent.name}/{place.name}"

    @classmethod
    def begin(cls, undo_home: Path, task_id: str) -> Record:
        """Make a record for the next apply of a task. Raises SandboxError."""
        if not task_id:
            raise SandboxError("an apply needs the identifier of its task, so that it can be undone")
        task = undo_home / quote(task_id, safe="").replace(".", "%2E")
        try:
            task.mkdir(mode=0o700, exist_ok=True)
            number = max((_number(place) for place in task.iterdir()), default=0) + 1
            place = task / f"{number:06d}"
            for path in (place, place / "images", place / "new"):
                path.mkdir(mode=0o700)
        except OSError as error:
            raise _no_place(undo_home, error) from error
        return cls(place)

    @property
    def task_id(self) -> str:
        return unquote(self.place.parent.name)

    @property
    def made_by_older_version(self) -> bool:
        """True for a record in the format of artoo's first version, which this one cannot restore."""
        return (self.place / OLD_JOURNAL).exists()

    @property
    def done_by_older_version(self) -> bool:
        return self.made_by_older_version and (self.place / _DONE).exists()

    @property
    def has_leftovers(self) -> bool:
        """True if the process died right after `done`: slots or open directories may be left."""
        return any((self.place / name).exists() for name in ("new", "slots.json", "modes.json"))

    @property
    def committed(self) -> bool:
        """True if the manifest was written: from then on paths may have been replaced."""
        return (self.place / MANIFEST).exists()

    @property
    def done(self) -> bool:
        return self.committed and (self.place / _DONE).exists()

    def image(self, step: Step) -> Location:
        """Return where the before-image of a step lies."""
        return Location(str(self.place), f"images/{step.number}")

    def manifest(self) -> Manifest:
        """Read the manifest. Raises SandboxError if it is damaged or of another version."""
        path = self.place / MANIFEST
        try:
            manifest = Manifest.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            kept = f"the before-images are in {self.place / 'images'}; do not delete them"
            raise SandboxError(f"the manifest {path} cannot be read ({_brief(error)}); {kept}") from error
        if manifest.format != FORMAT:
            raise SandboxError(f"the manifest {path} has format {manifest.format}; use the artoo that wrote it")
        return manifest

    def problem(self) -> str | None:
        """Return why the record cannot be undone; None if it can."""
        if self.made_by_older_version:
            return f"it was applied by an older version of artoo; its before-images are in {self.place}"
        try:
            self.manifest()
        except SandboxError as error:
            return str(error)
        return None

    def write(self, manifest: Manifest) -> Path:
        """Write the manifest under a name that does not count yet. The caller syncs it before `commit`."""
        temporary = self.place / f"{MANIFEST}.new"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(manifest.model_dump_json().encode("utf-8"))
        return temporary

    def commit(self) -> None:
        """Make the manifest count: from here on a start restores what it lists, until `done` is there."""
        (self.place / f"{MANIFEST}.new").rename(self.place / MANIFEST)
        sync_directory(self.place)

    def mark_done(self) -> None:
        """Note durably that the apply took effect."""
        os.close(os.open(self.place / _DONE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        sync_directory(self.place)

    def unmark_done(self) -> None:
        """Note durably that the apply is being taken back: `done` may be there although syncing it failed."""
        if self.done:
            (self.place / _DONE).unlink()
            sync_directory(self.place)

    def keep_only(self, manifest: Manifest) -> None:
        """Keep only these parts of the apply on record, for a later undo. Raises OSError."""
        write_durably(self.place / MANIFEST, manifest.model_dump_json().encode("utf-8"))
        self.mark_done()
        (self.place / _UNDOING).unlink(missing_ok=True)

    def forget(self) -> None:
        """Delete the record; what a crash leaves of it is never restored. Raises OSError."""
        (self.place / MANIFEST).unlink(missing_ok=True)
        sync_directory(self.place)
        shutil.rmtree(self.place)  # no chmod: before-images are hard links of the user's files

    def begin_undo(self, paths: Iterable[str]) -> None:
        """Note durably which paths an undo restores: half-restored ones are its own from here on."""
        write_durably(self.place / _UNDOING, _PATHS.dump_json(frozenset(paths)))

    @property
    def is_undoing(self) -> bool:
        return (self.place / _UNDOING).exists()

    def undoing(self) -> frozenset[str]:
        """Return the paths of an undo that was begun; none if there is none. Raises SandboxError."""
        path = self.place / _UNDOING
        try:
            return _PATHS.validate_json(path.read_bytes()) if path.exists() else frozenset()
        except (OSError, ValidationError) as error:
            raise SandboxError(f"{path} cannot be read ({_brief(error)}); keep it and report this") from error


def records_of(undo_home: Path, task_id: str) -> list[Record]:
    """Return the committed records of one task, oldest first. An interrupted one is not `done`."""
    return [one for one in all_records(undo_home) if one.task_id == task_id and one.committed]


def all_records(undo_home: Path) -> list[Record]:
    """Return all records, each task's oldest first."""
    tasks = sorted(task for task in undo_home.iterdir() if task.is_dir()) if undo_home.is_dir() else []
    places = ((task, sorted((one for one in task.iterdir() if one.is_dir()), key=_number)) for task in tasks)
    return [Record(place) for _, found in places for place in found]


def note_of_last_apply(artoo_home: Path, task_id: str) -> str | None:
    """Return the note of the task's last apply that took effect; None if there is none on record."""
    for record in reversed(records_of(artoo_home / "undo", task_id)):
        if record.done and not (manifest := record.manifest()).rest:
            return manifest.note
    return None


def _number(place: Path) -> int:
    """Return the number that orders a task's records. Records of older versions begin with nanoseconds."""
    digits = place.name.partition("-")[0]
    return int(digits) if digits.isdecimal() else 0


@contextmanager
def exclusive(undo_home: Path) -> Generator[None]:
    """Hold the lock over all records of this user: one apply or undo at a time. A crash releases it."""
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


def _brief(error: Exception) -> str:
    return str(error.strerror) if isinstance(error, OSError) else "it is damaged"


def now() -> float:
    """Return the time in seconds since the epoch."""
    return time.time()
