"""Where a task's view lies on disk, and what is written down of it. Nothing is made before the first change.

VIEWS/TASK/view.json              the record: which task, which directories, how they are viewed
VIEWS/TASK/lock                   held by the process that works in the view, or settles it
VIEWS/TASK/layers/NAME/N/up       what layer NAME holds over root N: an overlay's upper directory, or a copy
VIEWS/TASK/layers/NAME/base.jsonl what the real files were when this fork first changed them
VIEWS/TASK/base.jsonl             the same for the trunk, the layer `task`
VIEWS/TASK/tmp                    the task's own /tmp
VIEWS/TASK/commands/ID            what a command did, on its way into its layer
VIEWS/TASK/joined.jsonl           which forks are being joined, and what was in conflict
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.changes import printable_path
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots
from artoo.world.journal import record_bytes
from artoo.world.stage import Layer, remove_tree

TRUNK = "task"
"""The layer into which the task's own commands are folded, and forks are joined."""

_FORMAT = 1


class ViewKind(StrEnum):
    """How the real files are kept apart: layers over them, or a copy of project and workspace."""

    OVERLAY = "overlay"
    COPY = "copy"


class ViewRecord(BaseModel):
    """`view.json`. Paths are printable; `covered` are the roots that the view's layers lie over, by number."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    format: int = _FORMAT
    task_id: str
    kind: ViewKind
    created_at: float
    home: str
    workspace: str
    project: str
    covered: tuple[str, ...]

    @property
    def roots(self) -> Roots:
        return Roots(*(Path(record_bytes(path)) for path in (self.home, self.workspace, self.project)))

    @property
    def real_roots(self) -> tuple[Path, ...]:
        return tuple(Path(record_bytes(path)) for path in self.covered)


@dataclass(frozen=True, slots=True)
class Stratum:
    """One root and what lies over it, topmost first. `whole`: the topmost holds everything, the root is hidden."""

    root: Path
    uppers: tuple[Path, ...]
    whole: bool = False


@dataclass(frozen=True, slots=True)
class ViewPlace:
    """The directory of one task's view, which may not be there (yet)."""

    base: Path

    @property
    def task_id(self) -> str:
        return unquote(self.base.name)

    @property
    def exists(self) -> bool:
        return (self.base / "view.json").exists()

    @property
    def scratch(self) -> Path:
        return self.base / "tmp"

    @property
    def commands(self) -> Path:
        return self.base / "commands"

    @property
    def joined(self) -> Path:
        return self.base / "joined.jsonl"

    def base_file(self, layer: str = TRUNK) -> Path:
        """Where it stands what the real files were before this layer changed them."""
        return self.base / "base.jsonl" if layer == TRUNK else self.layer_home(layer) / "base.jsonl"

    def layer_home(self, layer: str) -> Path:
        return self.base / "layers" / _directory_name(layer)

    def upper(self, layer: str, number: int) -> Path:
        return self.layer_home(layer) / str(number) / "up"

    def layer_names(self) -> tuple[str, ...]:
        """The layers that there are, the trunk among them."""
        home = self.base / "layers"
        return tuple(sorted(unquote(child.name) for child in home.iterdir())) if home.is_dir() else ()

    def record(self) -> ViewRecord:
        """Raises SandboxError when there is none, or it is damaged, or of a newer artoo."""
        path = self.base / "view.json"
        try:
            record = ViewRecord.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise SandboxError(f"the view {path} cannot be read: {error}; keep it and report this") from error
        if record.format != _FORMAT:
            raise SandboxError(f"the view {path} has format {record.format}: use the artoo that wrote it")
        return record

    def trunk(self) -> tuple[Layer, ...]:
        """What the task changed, as layers over the real roots: to be scanned. Empty when nothing was changed."""
        return self.layers((TRUNK,))

    def layers(self, names: Iterable[str]) -> tuple[Layer, ...]:
        """For each root the first of the named layers (topmost first), with the others below it."""
        listed = tuple(names)
        if not self.exists:
            return ()
        found: list[Layer] = []
        for number, root in enumerate(self.record().real_roots):
            uppers = [upper for name in listed if (upper := self.upper(name, number)).is_dir()]
            if uppers:
                found.append(Layer(root, uppers[0], uppers[0].with_name("work"), tuple(uppers[1:])))
        return tuple(found)

    def strata(self, names: Iterable[str] = (TRUNK,)) -> tuple[Stratum, ...]:
        """What a reader has to look through, for each root of the view; the task's own /tmp with it."""
        listed = tuple(names)
        if not self.exists:
            return ()
        record = self.record()
        copied = record.kind is ViewKind.COPY
        found = [
            Stratum(root, tuple(upper for name in listed if (upper := self.upper(name, number)).is_dir()), copied)
            for number, root in enumerate(record.real_roots)
        ]
        if not copied and self.scratch.is_dir():
            found += [Stratum(Path(place), (self.scratch,), whole=True) for place in ("/tmp", "/var/tmp")]
        return tuple(found)

    def make(self, kind: ViewKind, roots: Roots, covered: Iterable[Path]) -> ViewRecord:
        """Makes the view's directory with its record. Raises OSError (disk full)."""
        record = ViewRecord(
            task_id=self.task_id,
            kind=kind,
            created_at=time.time(),
            home=_printable(roots.home),
            workspace=_printable(roots.workspace),
            project=_printable(roots.project),
            covered=tuple(_printable(root) for root in covered),
        )
        self.base.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.scratch.mkdir(exist_ok=True)
        self.scratch.chmod(0o1777)
        self.commands.mkdir(mode=0o700, exist_ok=True)
        temporary = self.base / "view.json.new"
        temporary.write_text(record.model_dump_json(), encoding="utf-8")
        temporary.rename(self.base / "view.json")
        return record

    def remove(self) -> None:
        """Forgets the view: its record first, so that a crash leaves no half of one."""
        (self.base / "view.json").unlink(missing_ok=True)
        if self.base.is_dir():
            remove_tree(self.base)

    @contextmanager
    def locked(self) -> Generator[None, None, None]:
        """The view to oneself, over all processes. Raises SandboxError when another one holds it."""
        descriptor = self.lock()
        try:
            yield
        finally:
            os.close(descriptor)

    def lock(self) -> int:
        """A descriptor that holds the view until it is closed. Raises SandboxError when another process does."""
        self.base.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.base / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise SandboxError(
                f"task {self.task_id} is at work in another process: wait for its end, or stop it"
            ) from None
        return descriptor


class Views:
    """All views below artoo's home. `home` is real and absolute."""

    def __init__(self, home: Path) -> None:
        self._base = home / "views"

    def place(self, task_id: str) -> ViewPlace:
        """Where the view of a task is, or would be."""
        if not task_id:
            raise SandboxError("a view needs the identifier of its task")
        return ViewPlace(self._base / _directory_name(task_id))

    def find(self, task_id: str) -> ViewPlace | None:
        """The view of a task that changed something, None when there is none."""
        place = self.place(task_id)
        return place if place.exists else None

    def listed(self) -> tuple[ViewPlace, ...]:
        """All views that there are, the oldest first."""
        if not self._base.is_dir():
            return ()
        places = [place for child in self._base.iterdir() if (place := ViewPlace(child)).exists]
        return tuple(sorted(places, key=lambda place: place.record().created_at))


def _directory_name(name: str) -> str:
    return quote(name, safe="").replace(".", "%2E")


def _printable(path: Path) -> str:
    return printable_path(os.fsencode(path))
