"""Where changes wait: one directory a run, with an upper layer for each root.

STAGE/ID/0/up    the upper layer of the first root: what the command wrote
STAGE/ID/0/fresh    the same while it is made
STAGE/ID/0/work  overlayfs needs it
STAGE/ID/0/opened   see `opened`
STAGE/ID/0/over  where bubblewrap mounts the overlay before it binds that to the root, when it lays the files itself
STAGE/ID/tmp     the command's /tmp
STAGE/ID/covers  what is laid over closed places: `file`, `directory`, and `void` (an overlay is made of two); not
                 when they are laid by steps (`laying`), which have covers of their own
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Limits, Roots
from artoo.world.allowance import MOST, Extent
from artoo.world.mounts import MountTable
from artoo.world.nodes import attributes_of
from artoo.world.opened import NOTES
from artoo.world.remove import remove_tree
from artoo.world.unheld import note_unheld
from artoo.world.watch import disk_usage, machine_memory

_FRESH = "fresh"


@dataclass(frozen=True, slots=True)
class Layer:
    """One root and the directories of its upper layer. `below`: frozen layers in between, topmost first."""

    root: Path
    upper: Path
    work: Path
    below: tuple[Path, ...] = ()

    @property
    def over(self) -> Path:
        """A mount point for the whole, before it is shown at the root."""
        return self.upper.with_name("over")

    @property
    def notes(self) -> Path:
        """Where it stands what is opened in it for a while (`opened`)."""
        return self.upper.with_name(NOTES)

    @property
    def footing(self) -> tuple[Path, Path] | None:
        """Mount points for a second overlay that holds the root alone, and for an empty directory below it.

        The kernel refuses two lower directories of which one lies in the other, as artoo's home does in the
        person's; seen through an overlay of its own, the root is another file system.
        """
        if not any(upper.is_relative_to(self.root) for upper in self.below):
            return None
        return self.upper.with_name("root"), self.upper.with_name("void")

    def make_mount_points(self) -> None:
        """Those that are named above. Raises OSError (disk full)."""
        for place in (self.over, *(self.footing or ())):
            place.mkdir(mode=0o700)


@dataclass(frozen=True, slots=True)
class Stage:
    """The directories of one run."""

    base: Path
    layers: tuple[Layer, ...]
    lock: int

    def discard(self) -> None:
        """Removes everything. To be called once."""
        try:
            remove_tree(self.base)
        finally:
            os.close(self.lock)

    def extent(self) -> Extent:
        """How much the upper layers hold."""
        return Extent(*disk_usage((one.upper for one in self.layers), stop_bytes=MOST.size, stop_paths=MOST.paths))

    def make_covers(self) -> None:
        """Raises OSError (disk full)."""
        self.covers.mkdir(mode=0o700)
        self.empty_file.touch(mode=0o000)
        for empty in (self.empty_directory, self.void):
            empty.mkdir(mode=0o000)

    @property
    def scratch(self) -> Path:
        return self.base / "tmp"

    @property
    def covers(self) -> Path:
        return self.base / "covers"

    @property
    def empty_file(self) -> Path:
        return self.covers / "file"

    @property
    def empty_directory(self) -> Path:
        return self.covers / "directory"

    @property
    def void(self) -> Path:
        return self.covers / "void"

    def layer_of(self, path: bytes) -> Layer | None:
        """The layer whose root holds `path` (absolute, real)."""
        best: Layer | None = None
        for layer in self.layers:
            root = os.fsencode(layer.root)
            inside = path == root or path.startswith(root + b"/")
            if inside and (best is None or len(str(layer.root)) > len(str(best.root))):
                best = layer
        return best


def overlay_roots(roots: Roots, mounts: MountTable, *, over_mounts: bool = True) -> tuple[Path, ...]:
    """The outermost real directories to overlay: a root inside another is covered by it, unless mounted there.

    The root directory and missing ones are left out. The kernel lays no overlay over inner mounts for somebody
    who could not unmount them: without `over_mounts` such directories are left out too, and stay read-only.
    """
    chosen: list[Path] = []
    candidates = {path.resolve() for path in (roots.home, roots.workspace, roots.project)}
    for root in sorted(candidates, key=lambda path: len(path.parts)):
        if root == Path("/") or not root.is_dir():
            continue
        if not over_mounts and mounts.below(os.fsencode(root)):
            continue
        same_mount = [
            outer
            for outer in chosen
            if root.is_relative_to(outer) and mounts.of(os.fsencode(outer)) == mounts.of(os.fsencode(root))
        ]
        if not same_mount:
            chosen.append(root)
    return tuple(chosen)


def memory_stage_home() -> Path:
    """A staging area in memory. Nothing of a dropped run ever reaches the disk, and ending one is no disk sync."""
    return Path(f"/dev/shm/artoo-{os.geteuid()}")


def choose_stage_home(homes: tuple[Path, ...], needed: int) -> Path:
    """The first home with room for `needed` bytes twice over; the last when none has."""
    for home in homes:
        if home != memory_stage_home() or _free_memory() > 2 * needed:
            return home
    return homes[-1]


def _free_memory() -> int:
    """Bytes that a new file in memory can take: what the system has and what /dev/shm allows."""
    seen = os.statvfs("/dev/shm")
    (available,) = machine_memory(b"MemAvailable")
    return min(available, seen.f_bavail * seen.f_frsize)


def _own_directory(base: Path) -> None:
    """Makes `base`, which must be ours alone: anybody could have made a name in /dev/shm before us."""
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    seen = base.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
        raise SandboxError(f"{base} belongs to somebody else: remove it")
    if stat.S_IMODE(seen.st_mode) & 0o077:
        base.chmod(0o700)


def make_stage(
    base: Path,
    identifier: str,
    roots: tuple[Path, ...],
    below: Mapping[Path, tuple[Path, ...]] = MappingProxyType({}),
) -> Stage:
    """Creates the directories of a run below `base`. Raises SandboxError when that is not possible.

    `below`: frozen layers between a root and the run's own, topmost first.
    """
    base.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    home = base / identifier
    try:
        _own_directory(base)
        home.mkdir(mode=0o700)
        lock = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        layers = tuple(
            _make_layer(home / str(index), root, below.get(root, ())) for index, root in enumerate(roots)
        )
        scratch = home / "tmp"
        scratch.mkdir()
        scratch.chmod(0o1777)
    except OSError as error:
        raise SandboxError(
            f"cannot prepare a staging area in {base}: {error.strerror}; free space or check its permissions"
        ) from error
    return Stage(home, layers, lock)


def _make_layer(home: Path, root: Path, below: tuple[Path, ...]) -> Layer:
    layer = Layer(root, home / "up", home / "work", below)
    layer.work.mkdir(mode=0o700, parents=True)
    make_upper(layer.upper, below[0] if below else root)
    return layer


def make_upper(upper: Path, model: Path) -> None:
    """An empty upper directory that looks like the directory below it. Raises OSError; then it is not there.

    An owner that the person may not give stays their own, and attributes may not fit: `scan` knows of that."""
    fresh = upper.with_name(_FRESH)
    with suppress(FileNotFoundError):
        fresh.rmdir()  # a full disk or a crash left it
    fresh.mkdir(mode=0o700)
    seen = model.stat()
    mine = fresh.stat()
    if (seen.st_uid, seen.st_gid) != (mine.st_uid, mine.st_gid):
        _give_if_allowed(fresh, seen)
    # Access lists are among the attributes, and decide over the mode: so that comes last.
    note_unheld(upper, [name for name, value in attributes_of(model) if not _is_held(fresh, name, value)])
    fresh.chmod(stat.S_IMODE(seen.st_mode))
    fresh.rename(upper)


def _is_held(upper: Path, name: str, value: bytes) -> bool:
    """Gives a directory an attribute, unless its file system cannot hold that. Raises OSError (disk full).

    Of a value that never fits ext4 and btrfs say, too, that no space is left.
    """
    try:
        os.setxattr(upper, name, value)
    except OSError as error:
        if error.errno == errno.EDQUOT or (error.errno == errno.ENOSPC and os.statvfs(upper).f_bavail == 0):
            raise
        return False
    return True


def _give_if_allowed(upper: Path, seen: os.stat_result) -> None:
    try:
        os.chown(upper, seen.st_uid, seen.st_gid)
    except PermissionError:
        return


def empty_if_full(scratch: Path, limits: Limits) -> None:
    """Empties a task's /tmp that leaves its next commands no room: it lasts, and counts for each of them."""
    used, paths = disk_usage((scratch,), limits.disk_bytes, limits.paths)
    if used > limits.disk_bytes // 2 or paths > limits.paths // 2:
        for child in scratch.iterdir():
            remove_tree(child)


def remove_orphans(base: Path) -> int:
    """Removes the staging directories of processes that no longer live; returns how many."""
    removed = 0
    for place in sorted(base.iterdir()) if base.is_dir() else ():
        descriptor = _lock_if_free(place / "lock")
        if descriptor is not None:
            remove_tree(place)
            os.close(descriptor)
            removed += 1
    return removed


def _lock_if_free(path: Path) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # being made at this moment, or not one of ours
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
