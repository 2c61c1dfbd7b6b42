"""The bubblewrap arguments for mounts, such as overlays, private /tmp, and covers over hidden paths.

The order of mounts matters. First come the machine's files (read-only), then private /tmp, /dev, /run and /proc,
read-only paths that must stay visible, the overlays, mounts inside the overlays, and last the covers over paths
that must not be read.
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
"""Directories of which each sandbox has its own instead of the machine's."""
_TEMPORARY = ("/tmp", "/var/tmp")
_PRIVATE = PathSet(PRIVATE_PLACES)
_SHARED_MEMORY = 512 * MIB
_OPAQUE = "user.overlay.opaque"


def overlay_roots(roots: Roots, mounts: MountTable, *, over_mounts: bool) -> tuple[Path, ...]:
    """Return the outermost real directories over which an overlay is mounted. A root inside another one is included
    only if it is on another mount.

    The root directory and missing directories are left out. If a user may not unmount the mounts in a directory,
    the kernel refuses that user an overlay over it. Therefore, unless `over_mounts` is true, directories that
    contain mounts are left out too, and commands can only read them.
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

    `bound`: paths that are mounted read-only. These are mounts inside an overlay, roots that no overlay covers, and
    programs in private directories. `covered`: paths that must not be read. `unseen`: paths that exist outside but
    not in the sandbox. They are reported to the user. `absent`: paths in upper directories that do not exist yet,
    although they correspond to a covered path or to a directory above one. The deepest comes first.
    """

    layout: Layout
    place: Path
    bound: tuple[str, ...]
    covered: tuple[str, ...]
    unseen: tuple[str, ...]
    absent: tuple[Path, ...]

    @classmethod
    def of(cls, layout: Layout, place: Path, mounts: MountTable) -> MountPlan:
        """Plan the mounts for the machine's present state. `place`: an empty directory for mount points.
        Blocking."""
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
        """True if a path that must be covered no longer exists."""
        return not all(map(os.path.lexists, self.covered))

    def remove_stand_ins(self) -> None:
        """Remove the mount points that bubblewrap made in upper directories because a path to be covered had
        vanished.

        bubblewrap makes an empty file or directory if the mount point does not exist. Such an entry would look like
        a change of the task, although no command has run yet and the path is covered.
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
        """The directories in which the data that commands write are stored: the upper directories, and the private
        /tmp."""
        uppers = (layer.upper or self.place / f"upper-{n}" for n, layer in enumerate(self.layout.layers))
        return (*uppers, self.scratch)

    @property
    def scratch(self) -> Path:
        """The directory in which the data that commands write to /tmp are stored."""
        return self.place / "upper-tmp" if self.layout.scratch_is_shared else self.layout.scratch

    def arguments(self) -> list[str]:
        """Return bubblewrap's arguments for the mounts. Directories that they name are made. Raises OSError (disk
        full)."""
        layout = self.layout
        memory = min(_SHARED_MEMORY, layout.limits.memory_bytes)
        arguments = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
        arguments += ("--perms", "1777", "--size", str(memory), "--tmpfs", "/dev/shm")
        # A read-only /proc protects the kernel's settings, which root could otherwise write.
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
        """Mount an overlay over the /tmp that another sandbox uses, and return its path.

        The parent directories of its mount points are in its own upper directory, so that no process of the other
        sandbox can replace them by links.
        """
        upper, work, over = self._make("upper-tmp", mode=0o1777), self._make("work-tmp"), self._make("over-tmp")
        os.chmod(upper, 0o1777)  # mkdir removes the permissions in the umask, so the mode is set again
        arguments += ("--overlay-src", str(self.layout.scratch), "--overlay", upper, work, f"/../oldroot{over}")
        return over

    def _overlay(self, number: int, layer: Layer) -> Iterator[str]:
        """Mount an overlay over a root.

        bubblewrap takes the sources of mounts from the old root and mounts below the new root. With a target of
        `/../oldroot/…`, the overlay can be the source of a bind mount. The overlay is bound to its root, because
        bubblewrap forbids devices and set-user-id programs only on bind mounts.
        """
        root = str(layer.root)
        upper, work = self._upper(number, layer)
        lowest = root
        if any(below.is_relative_to(layer.root) for below in layer.below):
            # The kernel refuses an overlay whose lower directory is inside that of another one. artoo's home, for
            # example, is inside the user's home. Through an overlay of its own, the root is seen as another file
            # system.
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
        """Make a layer that contains the parent directories of the mount points inside an overlay. Return the path
        of the layer.

        The layers below belong to a sandbox that may still run. Its processes could replace a parent directory by a
        link while bubblewrap follows the path, and bubblewrap would then make directories outside of the layer.
        """
        ways, root = self._make(f"ways-{number}"), str(layer.root)
        below = (*map(str, layer.below), root)
        for path in (*self.bound, *self.covered, *(str(inner.root) for inner in self.layout.layers)):
            kind = self._kind_inside(path) if path.startswith(f"{root}/") else ""
            if kind:
                _lay_way(ways, path[len(root) + 1 :].split("/"), kind, below)
        return ways

    def _upper(self, number: int, layer: Layer) -> tuple[str, str]:
        """Return the upper and the work directory of a layer. If it has none, temporary directories are made."""
        if layer.upper is not None and layer.work is not None:
            return str(layer.upper), str(layer.work)
        upper, work = self._make(f"upper-{number}"), self._make(f"work-{number}")
        _copy_rights(layer.root.stat(), upper)
        return upper, work

    def _cover(self, arguments: list[str]) -> None:
        """Cover each hidden path by an empty file or directory that can be neither read nor written.

        For each bind mount, bubblewrap reads the whole mount table. For an overlay it does not, and an overlay
        without an upper layer is read-only. Files, which need bind mounts, are therefore covered first, while the
        table is short.
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
        """Return the kind of object that commands would see at a path: `file`, `directory`, or an empty string.

        A task may have deleted or replaced the path or a parent of it before the user hid or created the path. Then
        the overlay hides the user's version, and bubblewrap must not make a mount point in the upper directory.
        """
        for layer in self.layout.layers:
            if path.startswith(f"{layer.root}/"):
                uppers = [str(upper) for upper in (layer.upper, *layer.below) if upper is not None]
                return _merged_kind(uppers, str(layer.root), path[len(str(layer.root)) + 1 :].split("/"))
        return _kind(path)

    def _make_way(self, path: str) -> None:
        """Make the mount point for a path in the private /tmp. Links in the path are replaced by directories.

        Otherwise a link that the task made could lead bubblewrap to make directories outside the sandbox.
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
    """Make a mount point in the directory `top`, with real directories as its parents.

    If an overlay merges such a parent with a directory in `below`, the parent gets the mode and owner of the
    latter.
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
    with suppress(PermissionError):  # an unprivileged user cannot change the owner of a directory
        os.chown(place, seen.st_uid, seen.st_gid)
    os.chmod(place, stat.S_IMODE(seen.st_mode))


def _merged_kind(uppers: Iterable[str], root: str, names: list[str]) -> str:
    """Return the kind of object at a path of an overlay. The first upper directory that has an entry for the path
    decides."""
    for upper in uppers:
        place = upper
        for depth, name in enumerate(names):
            if depth and _is_opaque(place) and not os.path.lexists(f"{place}/{name}"):
                return ""
            place = f"{place}/{name}"
            if not os.path.lexists(place):
                break  # no upper directory has an entry, so the layers below decide
            if _kind(place) != "directory":
                return _kind(place) if depth == len(names) - 1 else ""
        else:
            return "directory"
    return _kind("/".join((root, *names)))


def _kind(path: str) -> str:
    """Return `file` or `directory`. Return an empty string for links, missing paths, and whiteouts (which are
    devices)."""
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
    """Return the user's directories that no overlay covers, and that therefore stay read-only."""
    real = {os.path.realpath(path) for path in (roots.home, roots.workspace, roots.project) if os.path.isdir(path)}
    return sorted(path for path in real - {"/"} if not covered.cover(path))
