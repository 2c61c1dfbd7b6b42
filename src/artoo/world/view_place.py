"""Where a task's view lies on disk, and what is written down of it. Nothing is made before the first change.

VIEWS/TASK/view.json              the record: which task, which directories, how they are viewed
VIEWS/TASK/lock                   held by the process that works in the view, or settles it
VIEWS/TASK/layers/NAME/N/up       what layer NAME holds over root N: an overlay's upper directory
VIEWS/TASK/layers/NAME/copy       where commands work that no overlay can be had for
VIEWS/TASK/layers/NAME/base.jsonl what the real files were when this fork first changed them
VIEWS/TASK/layers/NAME/acts       how calls ended whose changes the layer holds
VIEWS/TASK/base.jsonl             the same for the trunk, the layer `task`
VIEWS/TASK/tmp                    the task's own /tmp
VIEWS/TASK/commands/ID            what a command did, on its way into its layer
VIEWS/TASK/spent/ID               what is left of it then, until it is removed
VIEWS/TASK/applying.json          of an apply or a discard that is not at its end (`settle`)
VIEWS/TASK/joined.json            which forks are being joined, and what was in conflict
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.changes import printable_path
from artoo.contracts.errors import SandboxError
from artoo.disk.whole import write_whole
from artoo.ports.sandbox import Roots
from artoo.world.allowance import MOST, Extent
from artoo.world.journal import record_bytes
from artoo.world.remove import remove_tree
from artoo.world.stage import Layer, make_upper
from artoo.world.watch import disk_usage

TRUNK = "task"
"""The layer into which the task's own commands are folded, and forks are joined."""

TRIAL = "trial"
"""The name, or the end of the name, of a fork that was made to be dropped: it is never joined."""

_FORMAT = 1
_LOCK = "lock"

PATIENCE_SECONDS = 5.0
"""How long somebody who works in a view, or settles it, waits for another who only looks at it."""
_BETWEEN_TRIES_SECONDS = 0.02


class ViewInUse(SandboxError):
    """Another process holds the view."""


class ViewKind(StrEnum):
    """How commands see the layers: laid over the real files, or in a copy of project and workspace.

    The layers themselves are the same: a view is read, joined and settled without knowing its kind.
    """

    OVERLAY = "overlay"
    COPY = "copy"


class ViewRecord(BaseModel):
    """`view.json`. Paths are printable; `covered` are the roots that the view's layers lie over, by number.
    `head`: the commit at which the project's repository stood before the task changed anything."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    format: int = _FORMAT
    task_id: str
    kind: ViewKind
    created_at: float
    home: str
    workspace: str
    project: str
    covered: tuple[str, ...]
    layer: str | None = None
    head: str | None = None

    @property
    def roots(self) -> Roots:
        layer = None if self.layer is None else Path(record_bytes(self.layer))
        return Roots(*(Path(record_bytes(path)) for path in (self.home, self.workspace, self.project)), layer=layer)

    @property
    def real_roots(self) -> tuple[Path, ...]:
        return tuple(Path(record_bytes(path)) for path in self.covered)


def lineage(layer: str) -> tuple[str, ...]:
    """A layer and those that it lies over, topmost first: a fork's name begins with that of what it forked."""
    names: list[str] = []
    while layer != TRUNK:
        names.append(layer)
        layer = layer.rpartition("/")[0] or TRUNK
    return (*names, TRUNK)


@lru_cache(maxsize=1_024)
def fork_name(parent: str, name: str) -> str:
    """The layer of a fork of the layer `parent`."""
    quoted = quote(name, safe="")
    if not quoted or (parent == TRUNK and quoted == TRUNK):
        raise SandboxError(f"a fork cannot be named {name!r}: give it another name")
    return quoted if parent == TRUNK else f"{parent}/{quoted}"


def given_name(layer: str) -> str:
    """The name that the fork of a layer was given."""
    return unquote(layer.rpartition("/")[2])


def is_trial(layer: str) -> bool:
    """Whether a layer is a trial's, or a fork of one."""
    return any(unquote(name).endswith(TRIAL) for name in layer.split("/"))


@dataclass(frozen=True, slots=True)
class Footing:
    """What a view is made over: its directories, and the real ones (`covered`) over which layers are laid."""

    kind: ViewKind
    roots: Roots
    covered: tuple[Path, ...]


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
        try:
            os.stat(f"{self.base}/view.json")  # asked at every turn: a quarter of Path.exists, and as strict
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    @property
    def scratch(self) -> Path:
        return self.base / "tmp"

    @property
    def commands(self) -> Path:
        return self.base / "commands"

    @property
    def spent(self) -> Path:
        return self.base / "spent"

    def joined(self, layer: str = TRUNK) -> Path:
        """The last join of forks into this layer."""
        return (self.base if layer == TRUNK else self.layer_home(layer)) / "joined.json"

    def base_file(self, layer: str = TRUNK) -> Path:
        """Where it stands what the real files were before this layer changed them."""
        return self.base / "base.jsonl" if layer == TRUNK else self.layer_home(layer) / "base.jsonl"

    def layer_home(self, layer: str) -> Path:
        return self.base / "layers" / _directory_name(layer)

    def acts(self, layer: str) -> Path:
        """Where it stands how calls ended whose changes this layer holds."""
        return self.layer_home(layer) / "acts"

    def upper(self, layer: str, number: int) -> Path:
        return self.layer_home(layer) / str(number) / "up"

    def layer_names(self) -> tuple[str, ...]:
        """The layers that there are, the trunk among them."""
        home = self.base / "layers"
        return tuple(sorted(unquote(child.name) for child in home.iterdir())) if home.is_dir() else ()

    @property
    def has_forks(self) -> bool:
        """Whether there are layers that were not joined."""
        return any(name != TRUNK for name in self.layer_names())

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
        return self.layers_of(TRUNK)

    def layers_of(self, name: str) -> tuple[Layer, ...]:
        """What one layer changes of what is below it, for each root."""
        if not self.exists:
            return ()
        return tuple(
            Layer(root, upper, upper.with_name("work"), self.below(name, number))
            for number, root in enumerate(self.record().real_roots)
            if (upper := self.upper(name, number)).is_dir()
        )

    def extent(self) -> Extent:
        """How much all layers hold."""
        uppers = (upper for name in self.layer_names() for upper in self.layer_home(name).glob("*/up"))
        return Extent(*disk_usage(uppers, stop_bytes=MOST.size, stop_paths=MOST.paths))

    def strata(self, layer: str = TRUNK) -> tuple[Stratum, ...]:
        """What a reader of a layer looks through, for each root of the view; the task's own /tmp with it."""
        listed = lineage(layer)
        if not self.exists:
            return ()
        record = self.record()
        found = [
            Stratum(root, tuple(upper for name in listed if (upper := self.upper(name, number)).is_dir()))
            for number, root in enumerate(record.real_roots)
        ]
        if record.kind is ViewKind.OVERLAY and self.scratch.is_dir():
            found += [Stratum(Path(place), (self.scratch,), whole=True) for place in ("/tmp", "/var/tmp")]
        return tuple(found)

    def below(self, layer: str, number: int) -> tuple[Path, ...]:
        """The frozen layers between a layer and the real root, topmost first."""
        uppers = (self.upper(name, number) for name in lineage(layer)[1:])
        return tuple(upper for upper in uppers if upper.is_dir())

    def make_layer(self, layer: str, number: int) -> Layer:
        """A layer over one root, made if it is not there. Raises OSError (disk full)."""
        root, upper = self.record().real_roots[number], self.upper(layer, number)
        if not upper.is_dir():
            upper.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_upper(upper, root)
        return Layer(root, upper, upper.with_name("work"), self.below(layer, number))

    def make(self, kind: ViewKind, roots: Roots, covered: Iterable[Path], head: str | None = None) -> ViewRecord:
        """Makes the view's directory with its record. Raises OSError (disk full)."""
        record = ViewRecord(
            task_id=self.task_id,
            kind=kind,
            created_at=time.time(),
            home=_printable(roots.home),
            workspace=_printable(roots.workspace),
            project=_printable(roots.project),
            covered=tuple(_printable(root) for root in covered),
            layer=None if roots.layer is None else _printable(roots.layer),
            head=head,
        )
        self.base.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.scratch.mkdir(exist_ok=True)
        self.scratch.chmod(0o1777)
        self.commands.mkdir(mode=0o700, exist_ok=True)
        write_whole(self.base / "view.json", record.model_dump_json().encode(), sync=False)
        return record

    @property
    def applying(self) -> Path:
        """The mark of an apply or a discard that is not at its end."""
        return self.base / "applying.json"

    def remove(self) -> None:
        """Forgets the view: its record first, so that a crash leaves no half of one, and its lock last: whoever
        waits for that would else make a view in a directory that is still being removed."""
        (self.base / "view.json").unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            self.remove_rest()
            (self.base / _LOCK).unlink(missing_ok=True)
            try:
                self.base.rmdir()
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:  # somebody has taken the place with a lock of their own
                    raise

    def remove_rest(self) -> None:
        """What a cut removal has left beside the lock: the next view must not lie over layers of this one."""
        for child in self.base.iterdir():
            if child.name != _LOCK:
                remove_tree(child)

    @contextmanager
    def locked(self, patience: float = 0.0) -> Generator[None, None, None]:
        """The view to oneself, over all processes. Raises ViewInUse when another one holds it for longer than
        `patience` (seconds). Blocking."""
        descriptor = self.lock(patience)
        try:
            yield
        finally:
            os.close(descriptor)

    def lock(self, patience: float = 0.0) -> int:
        """A descriptor that holds the view until it is closed. Raises ViewInUse as `locked` does. Blocking."""
        until = time.monotonic() + patience
        while (descriptor := self._try_lock()) is None:
            if time.monotonic() >= until:
                raise ViewInUse(f"task {self.task_id} is at work in another process: wait for its end, or stop it")
            time.sleep(_BETWEEN_TRIES_SECONDS)
        return descriptor

    def lock_bound(self, bound: Callable[[ViewPlace], object], patience: float = 0.0) -> int:
        """`lock`, and what `bound` ends is ended. That may remove the view, and the lock with it: then it is taken
        anew, for somebody else may hold the next one. Raises what `bound` raises, too."""
        while True:
            descriptor = self.lock(patience)
            try:
                bound(self)
                if os.fstat(descriptor).st_nlink:
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _try_lock(self) -> int | None:
        """Whoever had it may have removed the view meanwhile: then the lock is made anew with it."""
        try:
            self.base.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.base / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except (FileExistsError, FileNotFoundError):  # it is being removed at this moment
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:
                return descriptor
        except BlockingIOError:
            pass
        os.close(descriptor)
        return None


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

    def remembered(self) -> tuple[ViewPlace, ...]:
        """All places, those among them that were cut while they were made or forgotten."""
        if not self._base.is_dir():
            return ()
        return tuple(ViewPlace(child) for child in sorted(self._base.iterdir()) if child.is_dir())

    def listed(self) -> tuple[ViewPlace, ...]:
        """All views that there are, the oldest first."""
        places = [place for place in self.remembered() if place.exists]
        return tuple(sorted(places, key=lambda place: place.record().created_at))


@lru_cache(maxsize=1_024)
def _directory_name(name: str) -> str:
    return quote(name, safe="").replace(".", "%2E")


def _printable(path: Path) -> str:
    return printable_path(os.fsencode(path))
