"""Say in bubblewrap's words what a sandbox sees: overlays over the user's directories, everything else read-only.

The order matters: the machine's files read-only, private /tmp, /dev, /run and /proc, read-only places that must
stay visible, the overlays, what is mounted inside them, and last the covers over what must not be read.
"""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import MIB, Roots
from artoo.sandbox.protocols import Layer, Layout
from artoo.sandbox.reading.hidden_paths import hidden_paths
from artoo.sandbox.reading.mount_table import MountTable, inner_mounts
from artoo.sandbox.reading.path_set import PathSet, outermost
from artoo.sandbox.reading.readable_paths import wanted_paths

PRIVATE_PLACES = ("/tmp", "/var/tmp", "/run", "/dev/shm")
"""Directories of which a sandbox has its own."""
_TEMPORARY = ("/tmp", "/var/tmp")
_PRIVATE = PathSet(PRIVATE_PLACES)
_SHARED_MEMORY = 512 * MIB
_OPAQUE = "user.overlay.opaque"


def overlay_roots(roots: Roots, mounts: MountTable, *, over_mounts: bool) -> tuple[Path, ...]:
    """Return the outermost real directories to overlay: a root inside another needs none, unless mounted there.

    The root directory and missing ones are left out. The kernel mounts no overlay over inner mounts for a user who
    could not unmount them: without `over_mounts` such directories are left out too, and stay read-only.
    """
    chosen: list[Path] = []
    candidates = {path.resolve() for path in (roots.home, roots.workspace, roots.project)}
    for root in sorted(candidates, key=lambda path: len(path.parts)):
        if root == Path("/") or not root.is_dir():
            continue
        if not over_mounts and mounts.below(os.fsencode(root)):
            continue
        mount = mounts.of(os.fsencode(root))
        if not any(root.is_relative_to(outer) and mounts.of(os.fsencode(outer)) == mount for outer in chosen):
            chosen.append(root)
    return tuple(chosen)


@dataclass(frozen=True, slots=True)
class MountPlan:
    """The mounts of a sandbox.

    `bound` is shown as it is, read-only: what is mounted inside an overlay, roots that no overlay covers, programs
    in places that are private. `covered` must not be read. `unseen` are paths that the user's commands would find
    outside and not here, for the reader. `absent` are the places in upper directories where a covered path, or what
    leads to it, has nothing of the task; deepest first.
    """

    layout: Layout
    place: Path
    bound: tuple[str, ...]
    covered: tuple[str, ...]
    unseen: tuple[str, ...]
    absent: tuple[Path, ...]

    @classmethod
    def of(cls, layout: Layout, place: Path, mounts: MountTable) -> MountPlan:
        """Return the plan for the machine as it is now. `place`: an empty directory for mount points. Blocking."""
        roots = tuple(layer.root for layer in layout.layers)
        hidden = hidden_paths(layout.roots, layout.artoo_home, mounts)
        wanted = wanted_paths(layout.roots)
        hidden_set, root_set = PathSet(hidden), PathSet(map(str, roots))
        private = [path for path in wanted.mountable if _PRIVATE.cover(path) and not root_set.cover(path)]
        missed = _missed_roots(layout.roots, root_set)
        bound = (*outermost(private), *missed, *inner_mounts(roots, mounts))
        shown = PathSet((*map(str, roots), *bound))
        covered = outermost(path for path in hidden if not _PRIVATE.cover(path) or shown.cover(path))
        unseen = [
            path
            for path in wanted.all
            if (_PRIVATE.cover(path) and not shown.cover(path)) or hidden_set.cover(os.path.realpath(path))
        ]
        return cls(layout, place, bound, covered, tuple(unseen), tuple(_absent(layout, covered)))

    def is_outdated(self) -> bool:
        """True if something to be covered is not there any more."""
        return not all(map(os.path.lexists, self.covered))

    def remove_stand_ins(self) -> None:
        """Remove what bubblewrap made in upper directories for covered paths that vanished after they were listed.

        bubblewrap makes an empty file or directory where nothing is left to mount on. That would look like a change
        of the task, although no command can have made it: none has run, and the path is covered.
        """
        for path in self.absent:
            with suppress(OSError):
                place = path.lstat()
                if stat.S_ISDIR(place.st_mode):
                    path.rmdir()
                elif place.st_size == 0:
                    path.unlink()

    @property
    def written(self) -> tuple[Path, ...]:
        """The directories in which commands write: the upper directories, and the private /tmp."""
        uppers = (layer.upper or self.place / f"upper-{n}" for n, layer in enumerate(self.layout.layers))
        return (*uppers, self.scratch)

    @property
    def scratch(self) -> Path:
        """The directory that holds what commands write to /tmp."""
        return self.place / "upper-tmp" if self.layout.scratch_is_shared else self.layout.scratch

    def arguments(self) -> list[str]:
        """Return bubblewrap's arguments, and make the directories that they name. Raises OSError (disk full)."""
        layout = self.layout
        memory = min(_SHARED_MEMORY, layout.limits.memory_bytes)
        arguments = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
        arguments += ("--perms", "1777", "--size", str(memory), "--tmpfs", "/dev/shm")
        # Read-only mounts of /proc close the settings of the kernel that root could write.
        arguments += ("--remount-ro", "/dev", "--remount-ro", "/proc", "--tmpfs", "/run")
        shown = str(layout.scratch)
        if layout.scratch_is_shared:
            shown = self._shared_scratch(arguments)
        for private in _TEMPORARY:
            if os.path.isdir(private):
                arguments += ("--bind", shown, private)
        roots = PathSet(str(layer.root) for layer in layout.layers)
        for path in self.bound:
            if not roots.cover(path):
                self._make_way(path)
                arguments += ("--ro-bind-try", path, path)
        for number, layer in enumerate(layout.layers):
            self._make_way(str(layer.root))
            if self._kind_inside(str(layer.root)) != "directory":
                raise SandboxError(f"{layer.root} cannot be shown to commands: the task replaced what leads to it")
            arguments += self._overlay(number, layer)
        for path in self.bound:
            if roots.cover(path) and self._kind_inside(path):
                arguments += ("--ro-bind-try", path, path)
        self._cover(arguments)
        return [*arguments, "--remount-ro", "/run"]

    def _shared_scratch(self, arguments: list[str]) -> str:
        """Mount an overlay over the /tmp in which another sandbox works, and return where.

        The ways to mount points lie in its upper directory, so no process outside can put a link in them.
        """
        upper, work, over = self._make("upper-tmp", mode=0o1777), self._make("work-tmp"), self._make("over-tmp")
        os.chmod(upper, 0o1777)  # mkdir leaves out bits of the umask
        arguments += ("--overlay-src", str(self.layout.scratch), "--overlay", upper, work, f"/../oldroot{over}")
        return over

    def _overlay(self, number: int, layer: Layer) -> Iterator[str]:
        """Mount an overlay over a root.

        bubblewrap takes sources from the old root and mounts below the new one. A target that leaves the new root
        upwards makes the overlay a source for a further mount: it is bound to its root, because of bubblewrap's
        mounts only a bind forbids devices and set-user-id programs.
        """
        root = str(layer.root)
        upper, work = self._upper(number, layer)
        lowest = root
        if any(below.is_relative_to(layer.root) for below in layer.below):
            # The kernel refuses two lower directories of which one lies in the other, as artoo's home does in the
            # user's. Seen through an overlay of its own, the root is another file system.
            footing, void = self._make(f"footing-{number}"), self._make(f"void-{number}")
            yield from ("--tmpfs", f"/../oldroot{void}", "--overlay-src", void, "--overlay-src", root)
            yield from ("--ro-overlay", f"/../oldroot{footing}")
            lowest = footing
        ways = [self._ways(number, layer)] if layer.below else []
        for source in (lowest, *map(str, reversed(layer.below)), *ways):
            yield from ("--overlay-src", source)
        over = self._make(f"over-{number}")
        yield from ("--overlay", upper, work, f"/../oldroot{over}", "--bind", over, root)

    def _ways(self, number: int, layer: Layer) -> str:
        """Make a layer that holds the ways to the mount points inside an overlay, and return it.

        The layers below it belong to a sandbox that may live. Its processes could put a link in such a way while
        bubblewrap follows it, and bubblewrap would make directories outside.
        """
        ways, root = self._make(f"ways-{number}"), str(layer.root)
        below = (*map(str, layer.below), root)
        for path in (*self.bound, *self.covered, *(str(inner.root) for inner in self.layout.layers)):
            kind = self._kind_inside(path) if path.startswith(f"{root}/") else ""
            if kind:
                _lay_way(ways, path[len(root) + 1 :].split("/"), kind, below)
        return ways

    def _upper(self, number: int, layer: Layer) -> tuple[str, str]:
        """Return the upper and the work directory of a layer, throw-away ones if it has none."""
        if layer.upper is not None and layer.work is not None:
            return str(layer.upper), str(layer.work)
        upper, work = self._make(f"upper-{number}"), self._make(f"work-{number}")
        _copy_rights(layer.root.stat(), upper)
        return upper, work

    def _cover(self, arguments: list[str]) -> None:
        """Cover each hidden path by nothing that can be read or written.

        bubblewrap reads the whole mount table for each bind, but not for an overlay, which is read-only by itself
        without an upper layer. So files come first, while the table is short.
        """
        kinds = {path: self._kind_inside(path) for path in self.covered}
        empty_file = self.place / "empty-file"
        empty_file.touch(mode=0o000)
        one, other = self._make("empty", mode=0o000), self._make("empty-too", mode=0o000)
        for path, kind in kinds.items():
            if kind == "file":
                arguments += ("--ro-bind", str(empty_file), path)
        for path, kind in kinds.items():
            if kind == "directory":
                arguments += ("--overlay-src", one, "--overlay-src", other, "--ro-overlay", path)

    def _kind_inside(self, path: str) -> str:
        """Return what commands would see at a hidden path: `file`, `directory`, or nothing.

        A task may have deleted or replaced it, or something above it, before the user hid it or put it there. Then
        the overlay hides what the user has, and bubblewrap must not make a mount point in the upper directory.
        """
        for layer in self.layout.layers:
            if path.startswith(f"{layer.root}/"):
                uppers = [str(upper) for upper in (layer.upper, *layer.below) if upper is not None]
                return _merged_kind(uppers, str(layer.root), path[len(str(layer.root)) + 1 :].split("/"))
        return _kind(path)

    def _make_way(self, path: str) -> None:
        """Make the mount point for a path in the private /tmp.

        The task may have put a link in the way, by which bubblewrap would make directories outside the sandbox.
        """
        private = next((place for place in _TEMPORARY if path.startswith(f"{place}/")), None)
        if private is None:
            return
        below = (str(self.layout.scratch),) if self.layout.scratch_is_shared else ()
        kind = "directory" if os.path.isdir(path) else "file"
        _lay_way(str(self.scratch), path[len(private) + 1 :].split("/"), kind, below)

    def _make(self, name: str, mode: int = 0o700) -> str:
        made = self.place / name
        made.mkdir(mode=mode)
        return str(made)


def _absent(layout: Layout, covered: Iterable[str]) -> Iterator[Path]:
    for path in covered:
        for layer in layout.layers:
            if layer.upper is not None and path.startswith(f"{layer.root}/"):
                inside = Path(path).relative_to(layer.root)
                ways = (layer.upper / way for way in (inside, *inside.parents[:-1]))
                yield from (way for way in ways if not os.path.lexists(way))


def _lay_way(top: str, names: list[str], kind: str, below: tuple[str, ...]) -> None:
    """Make a mount point in the directory `top`, and real directories on the way to it.

    Directories that an overlay merges with those in `below` get their modes and owners.
    """
    for depth in range(1, len(names) + 1):
        way = "/".join(names[:depth])
        place = f"{top}/{way}"
        wanted = kind if depth == len(names) else "directory"
        if _kind(place) == wanted:
            continue
        if os.path.lexists(place):
            os.rename(place, f"{place}.moved-{uuid.uuid4().hex}")
        if wanted == "file":
            os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644))
            return
        os.mkdir(place)
        seen = next((f"{layer}/{way}" for layer in below if _kind(f"{layer}/{way}") == "directory"), None)
        if seen is not None:
            _copy_rights(os.lstat(seen), place)


def _copy_rights(seen: os.stat_result, place: str) -> None:
    with suppress(PermissionError):  # another user's directory: a plain user shows it as their own
        os.chown(place, seen.st_uid, seen.st_gid)
    os.chmod(place, stat.S_IMODE(seen.st_mode))


def _merged_kind(uppers: Iterable[str], root: str, names: list[str]) -> str:
    """Return what is at a path of an overlay: the first upper directory that says something about it decides."""
    for upper in uppers:
        place = upper
        for depth, name in enumerate(names):
            if depth and _is_opaque(place) and not os.path.lexists(f"{place}/{name}"):
                return ""
            place = f"{place}/{name}"
            if not os.path.lexists(place):
                break  # the layers below decide
            if _kind(place) != "directory":
                return _kind(place) if depth == len(names) - 1 else ""
        else:
            return "directory"
    return _kind("/".join((root, *names)))


def _kind(path: str) -> str:
    """Return the kind of what is at a path; nothing for links, and for the devices that mark deletions."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return ""
    if stat.S_ISDIR(mode):
        return "directory"
    return "" if stat.S_ISLNK(mode) or stat.S_ISCHR(mode) else "file"


def _is_opaque(directory: str) -> bool:
    try:
        return os.getxattr(directory, _OPAQUE) == b"y"
    except OSError:
        return False


def _missed_roots(roots: Roots, covered: PathSet) -> list[str]:
    """Return the user's directories that no overlay covers: they stay read-only."""
    real = {os.path.realpath(path) for path in (roots.home, roots.workspace, roots.project) if os.path.isdir(path)}
    return sorted(path for path in real - {"/"} if not covered.cover(path))
