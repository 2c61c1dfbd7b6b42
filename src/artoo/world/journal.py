"""The write-ahead journal of one act: what every path was and is to be, and where the contents lie.

UNDO/TASK/TIME-ID/journal.json   the commit point: it is renamed into place when everything is ready
UNDO/TASK/TIME-ID/images/K/N     what was at step N (the old file itself where that is possible; see `images`)
UNDO/TASK/TIME-ID/layer          the trunk of the view, if all of it takes effect (see `taken`)
UNDO/TASK/TIME-ID/names/N        one more name of the file that was at step N, if it had others
UNDO/TASK/TIME-ID/done           the act took effect completely
UNDO/TASK/TIME-ID/returning      the act is being taken back, and is never finished any more
UNDO/TASK/TIME-ID/undoing        the paths that are being put back, a JSON list: a start goes on with a cut undo
UNDO/TASK/TIME-ID/named          directories in which an undo gives names to commits (`git_keep`), a JSON list
UNDO/TASK/TIME-ID/opened         see `unlocked`
UNDO/TASK/TIME-ID/due            since when it is old enough to be forgotten
UNDO/TASK/TIME-ID-rest           what could not be taken back of an act that failed, its place being in use
"""

from __future__ import annotations

import base64
import fcntl
import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from artoo.contracts.changes import Node, path_bytes, printable_path
from artoo.contracts.errors import SandboxError
from artoo.disk.whole import sync_directory, write_durably
from artoo.ports.sandbox import ActNote
from artoo.world.images import Images
from artoo.world.nodes import NodeState, is_kept

_FORMAT = 6
_READABLE = (1, 2, 3, 4, 5, 6)
"""Format 1 had no note, format 2 no digests of contents; in format 3 no view lent its own files;
in format 4 all before-images lay in one directory (`images`); in format 5 no act took a trunk with it (`taken`)."""

_JOURNAL, _DONE, _NEW, _LANDINGS, _LAYER = "journal.json", "done", "new", "landings", "layer"
_RETURNING, _UNDOING, _NAMED, _DUE, _REST = "returning", "undoing", "named", "due", "-rest"
_PATHS = TypeAdapter(frozenset[str])


@dataclass(slots=True)  # frozen it would take twice as long to make, and thousands are made at once
class StateRecord:
    """A NodeState as it is written down; attribute values in base64. Nobody changes one."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    node: Node
    mode: int
    uid: int
    gid: int
    size: int
    mtime_ns: int
    inode: int
    device: int
    links: int
    rdev: int
    target: str
    xattrs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, state: NodeState | None) -> StateRecord | None:
        if state is None:
            return None
        return cls(
            node=state.node,
            mode=state.mode,
            uid=state.uid,
            gid=state.gid,
            size=state.size,
            mtime_ns=state.mtime_ns,
            inode=state.inode,
            device=state.device,
            links=state.links,
            rdev=state.rdev,
            target=printable_path(state.target) if state.target else "",
            xattrs=tuple((name, base64.b64encode(value).decode()) for name, value in state.xattrs),
        )

    def attributes(self) -> dict[str, bytes]:
        """Those that a look yields today: what an earlier version wrote down beside them is nobody's change."""
        return {name: base64.b64decode(value) for name, value in self.xattrs if is_kept(name)}


@dataclass(slots=True)  # as StateRecord
class Step:
    """One path's part of an act. `root` and `relative` are printable paths; `relative` is empty for the root.

    `source` holds the new content and is renamed into place; a path from the record on if it lies there. `image`
    is the number of the before-image. The digests (sha256, hex) are those of a file's content: what was agreed to
    be replaced, and what replaces it. `lent`: the source is the view's own file, which gets it back if the act is
    taken back.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    root: str
    relative: str
    before: StateRecord | None
    after: StateRecord | None
    in_place: bool = False
    source: str | None = None
    image: int | None = None
    image_inode: int | None = None
    before_sha256: str | None = None
    after_sha256: str | None = None
    lent: bool = False

    @property
    def swaps(self) -> bool:
        """Whether what the source is exchanged with stays there, as the before-image: then that has no number."""
        return self.image is None and self.image_inode is not None

    @property
    def restored(self) -> StateRecord | None:
        """The state that taking this step back leads to: a copied image is another inode than the old file."""
        if self.before is None or self.image_inode is None:
            return self.before
        return replace(self.before, inode=self.image_inode)

    @property
    def yields_image(self) -> bool:
        """Whether what the source is exchanged with becomes the before-image, of which nothing was kept ahead."""
        return self.lent and self.before is not None and self.image_inode == self.before.inode

    @property
    def had_names(self) -> bool:
        """Whether the old file had other names, so that its image is a copy."""
        was = self.before
        if was is None or was.node is not Node.FILE or was.links == 1:
            return False
        return self.image is not None and self.image_inode not in (None, was.inode)

    @property
    def path(self) -> str:
        return f"{self.root}/{self.relative}" if self.relative else self.root


class Note(BaseModel):
    """An `ActNote` as it is written down."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    act: str
    call: str
    outcome: str

    @classmethod
    def of(cls, note: ActNote | None) -> Note | None:
        return None if note is None else cls(act=note.act, call=note.call, outcome=note.outcome)

    def plain(self) -> ActNote:
        return ActNote(self.act, self.call, self.outcome)


class Journal(BaseModel):
    """One act. `created_at` is seconds since the epoch; `note` tells which call it belongs to, and its outcome.
    `taken`: the inode of the trunk of its view, which the act takes with it (`taken`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    format: int = _FORMAT
    task_id: str
    created_at: float
    steps: tuple[Step, ...]
    note: Note | None = None
    taken: int | None = None


class Record:
    """The directory of one act."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.name = f"{place.parent.name}/{place.name}"
        self.images = Images(place)
        self.layer = place / _LAYER

    def source(self, step: Step) -> str | None:
        """Where the new content of a step lies; None when it has none."""
        lies = step.source
        above = "" if lies is None or lies.startswith("/") else f"{self.place}/"  # join takes five times as long
        return None if lies is None else above + record_bytes(lies)

    def image(self, step: Step) -> str | None:
        """Where the before-image of a step lies; None when it has none."""
        if step.swaps:
            return self.source(step)
        return None if step.image is None else self.images.at(step.image)

    @property
    def task_id(self) -> str:
        return unquote(self.place.parent.name)

    @classmethod
    def begin(cls, undo_home: Path, task_id: str, name: str) -> Record:
        """A new record, not committed: recovery would forget it. Raises SandboxError."""
        if not task_id:
            raise SandboxError("an act needs the identifier of its task, so that it can be undone")
        place = undo_home / directory_name(task_id) / name
        try:
            place.parent.mkdir(mode=0o700, exist_ok=True)
            place.mkdir(mode=0o700)
        except OSError as error:
            raise _no_place(undo_home, error) from error
        return cls(place)

    def make_new(self) -> Path:
        """A directory beside the journal for new contents on their way."""
        place = self.place / _NEW
        place.mkdir(mode=0o700, exist_ok=True)
        return place

    def announce_landing(self, place: str) -> None:
        """Notes a landing directory before it is made, so that a crash cannot leave it behind unknown."""
        with (self.place / _LANDINGS).open("a", encoding="utf-8") as file:
            file.write(place + "\n")
            file.flush()
            os.fsync(file.fileno())

    def landings(self) -> list[str]:
        """The landing directories that were announced, as printable paths."""
        path = self.place / _LANDINGS
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def write(self, journal: Journal) -> tuple[Path, ...]:
        """Lays the journal down. What is returned, and all that the act needs, must be durable before `commit`."""
        temporary = self.place / f"{_JOURNAL}.new"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(journal.model_dump_json().encode("utf-8"))
        return temporary, *self.images.directories(), self.place, self.place.parent, self.place.parent.parent

    def commit(self) -> None:
        """Makes the act durable: from here on it is finished, or undone, whatever happens."""
        (self.place / f"{_JOURNAL}.new").rename(self.place / _JOURNAL)
        sync_directory(self.place)

    @property
    def committed(self) -> bool:
        return (self.place / _JOURNAL).exists()

    @property
    def done(self) -> bool:
        return self.committed and (self.place / _DONE).exists()

    def mark_done(self) -> None:
        """The act took effect."""
        os.close(os.open(self.place / _DONE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

    @property
    def is_rest(self) -> bool:
        """Whether it is no act that took effect, but what of a failed one could not be taken back."""
        return self.place.name.endswith(_REST)

    @property
    def is_returning(self) -> bool:
        """Whether taking it back has begun: what has come back may be the only copy, and must not go again."""
        return self.is_rest or (self.place / _RETURNING).exists()

    def begin_return(self) -> None:
        """From here on it is only taken back, whatever happens. Raises OSError."""
        os.close(os.open(self.place / _RETURNING, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        sync_directory(self.place)

    @property
    def is_undoing(self) -> bool:
        """Whether an undo has begun and is not whole yet."""
        return (self.place / _UNDOING).exists()

    def undoing(self) -> frozenset[str]:
        """The paths of a begun undo. Raises SandboxError."""
        return self._paths(_UNDOING)

    def named(self) -> frozenset[str]:
        """The directories (printable) in which an undo made names. Raises SandboxError."""
        return self._paths(_NAMED)

    def announce_names(self, directory: Path) -> None:
        """Notes it before names are made there: a crash cannot leave them behind unknown. Raises OSError."""
        write_durably(
            self.place / _NAMED, _PATHS.dump_json(self.named() | {printable_path(os.fsencode(directory))})
        )

    def _paths(self, name: str) -> frozenset[str]:
        path = self.place / name
        try:
            return _PATHS.validate_json(path.read_bytes()) if path.exists() else frozenset()
        except (OSError, ValidationError) as error:
            raise SandboxError(f"{path} cannot be read: {error}; keep it and report this") from error

    def begin_undo(self, paths: Iterable[str]) -> None:
        """From here on what is found half put back at these paths is the undo's own. Raises OSError."""
        write_durably(self.place / _UNDOING, _PATHS.dump_json(frozenset(paths)))

    def end_undo(self, left: Iterable[Step]) -> None:
        """All but these steps are put back, and of the act no more. Raises OSError."""
        self._keep(self.journal().model_copy(update={"steps": tuple(left)}))
        (self.place / _UNDOING).unlink(missing_ok=True)

    def keep_rest(self, steps: Iterable[Step]) -> None:
        """Of an act that did not take effect these steps are left, for an undo later. Raises OSError.

        It has another name from the beginning, by which nobody takes it for the act.
        """
        rest = self if self.is_rest else Record(self.place.with_name(self.place.name + _REST))
        if rest is not self:
            self.place.rename(rest.place)
            sync_directory(rest.place.parent)
        rest._keep(rest.journal().model_copy(update={"steps": tuple(steps), "note": None}))
        rest.mark_done()

    def _keep(self, journal: Journal) -> None:
        write_durably(self.place / _JOURNAL, journal.model_dump_json().encode("utf-8"))

    def is_due(self, now: float, notice: float) -> bool:
        """Whether it was old enough already at a look `notice` seconds ago, also by the clock. Raises OSError."""
        path = self.place / _DUE
        if not path.exists():
            path.touch(mode=0o600)
            os.utime(path, (now, now))
        return path.stat().st_mtime + notice <= now

    def not_due(self) -> None:
        """It is younger than a look found it, whose clock was wrong."""
        (self.place / _DUE).unlink(missing_ok=True)

    def uncommit(self) -> None:
        """Before it is removed: of what a crash leaves of it nothing may be done again. Raises OSError."""
        (self.place / _JOURNAL).unlink(missing_ok=True)

    def journal(self) -> Journal:
        """The journal. Raises SandboxError when it is damaged or of a newer artoo."""
        path = self.place / _JOURNAL
        try:
            journal = Journal.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise SandboxError(f"the journal {path} cannot be read: {error}; keep it and report this") from error
        if journal.format not in _READABLE:
            raise SandboxError(f"the journal {path} has format {journal.format}: use the artoo that wrote it")
        return journal

    def damage(self) -> str | None:
        """Why the journal cannot be read; None when it can."""
        try:
            self.journal()
        except SandboxError as error:
            return str(error)
        return None


def _no_place(undo_home: Path, error: OSError) -> SandboxError:
    return SandboxError(
        f"nothing was changed: {undo_home}, where the old state is kept, cannot be written ({error.strerror});"
        " free space, or check its permissions"
    )


def directory_name(task_id: str) -> str:
    """Of the directory of a task."""
    return quote(task_id, safe="").replace(".", "%2E")


def records(undo_home: Path) -> Iterator[Record]:
    """All records, oldest first."""
    if not undo_home.is_dir():
        return
    found = [place for task in undo_home.iterdir() if task.is_dir() for place in task.iterdir() if place.is_dir()]
    yield from map(Record, sorted(found, key=lambda one: one.name))


def records_of(undo_home: Path, task_id: str) -> list[Record]:
    """The records of one task, oldest first."""
    return [record for record in records(undo_home) if record.task_id == task_id]


@contextmanager
def exclusive(undo_home: Path) -> Generator[None, None, None]:
    """One act at a time, over all processes of this user. A crash releases it. Raises SandboxError."""
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


def record_bytes(printable: str) -> str:
    """A printable path as the text that Python's os functions take."""
    if "\\" not in printable and printable.isascii():
        return printable
    return os.fsdecode(path_bytes(printable))
