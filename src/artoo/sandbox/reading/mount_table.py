"""Parse the mount table, for mounts inside roots, bind mounts, and file systems in memory.

An overlay shows only one file system, so the mounts inside a root must be mounted again over it. A rule about a
path must apply to all names of the path, because it could be bypassed otherwise.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_IN_MEMORY = frozenset(("tmpfs", "ramfs"))
_OCTAL = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of the file mountinfo. The directory `root` of the file system on `device` is mounted at `point`."""

    identifier: int
    point: bytes
    type: str
    device: bytes = b""
    root: bytes = b"/"


@dataclass(frozen=True, slots=True)
class MountTable:
    """The mounts in the order in which they were made. A later mount covers an earlier one at the same point."""

    mounts: tuple[Mount, ...]
    aliased: tuple[Mount, ...] = ()
    """The mounts whose content, or a part of it, is also visible through another mount."""

    @classmethod
    def of_mounts(cls, mounts: Iterable[Mount]) -> MountTable:
        """Build the table of these mounts."""
        listed = tuple(mounts)
        return cls(listed, _aliased(listed))

    @classmethod
    def read(cls, source: Path = Path("/proc/self/mountinfo")) -> MountTable:
        """Read the table of this process. It is empty if the system has none (macOS)."""
        try:
            text = source.read_bytes()
        except OSError:
            return cls(())
        return _table(text)

    def of(self, path: bytes) -> int | None:
        """Return the identifier of the mount that contains `path` (absolute, resolved). Return None if it is not
        known."""
        best = self._holding(path)
        return best.identifier if best else None

    def in_memory(self, path: bytes) -> bool:
        """Check whether `path` (absolute, resolved) is on a file system in memory, whose files are lost when the
        machine restarts."""
        best = self._holding(path)
        return best is not None and best.type in _IN_MEMORY

    def type_of(self, path: bytes) -> str:
        """Return the type of the file system at `path` (absolute, resolved), empty if unknown."""
        best = self._holding(path)
        return best.type if best else ""

    def _holding(self, path: bytes) -> Mount | None:
        best: Mount | None = None
        for mount in self.mounts:
            if _inside(path, mount.point) and (best is None or len(mount.point) >= len(best.point)):
                best = mount
        return best

    def below(self, root: bytes) -> tuple[bytes, ...]:
        """Return the mount points inside `root`, outermost first. `root` itself is not one of them."""
        inner = {mount.point for mount in self.mounts if mount.point != root and _inside(mount.point, root)}
        return tuple(sorted(inner))

    def without(self, mounts: Iterable[Mount]) -> MountTable:
        """Return the table without these mounts."""
        gone = {mount.identifier for mount in mounts}
        return MountTable.of_mounts(mount for mount in self.mounts if mount.identifier not in gone)

    def other_names(self, path: str) -> tuple[str, ...]:
        """Return the other names of a resolved path."""
        raw = os.fsencode(path)
        mount = self._holding(raw) if self.aliased else None
        if mount is None or mount not in self.aliased:
            return ()
        place = _moved(raw, mount.point, mount.root)
        others = (one for one in self.aliased if one != mount and one.device == mount.device)
        named = ((one, _moved(place, one.root, one.point)) for one in others if _inside(place, one.root))
        return tuple(os.fsdecode(name) for one, name in named if self._holding(name) == one)

    def by_every_name(self, paths: Iterable[str]) -> set[str]:
        """Return these resolved paths together with all their other names."""
        found = set(paths)
        return found.union(*map(self.other_names, found)) if self.aliased else found

    def places_of(self, mount: Mount) -> tuple[str, ...]:
        """Return the other paths at which the content of a mount is visible."""
        return self.other_names(os.fsdecode(mount.point))

    def elsewhere(self, places: Iterable[str]) -> Iterator[str]:
        """Yield the other names of these resolved paths, or of directories in them, that exist."""
        for path in places if self.aliased else ():
            yield from (name for name in self.other_names(path) if os.path.lexists(name))
            mount = self._holding(os.fsencode(path))
            if mount is not None:
                place = _moved(os.fsencode(path), mount.point, mount.root)
                parts = (one for one in self.aliased if one.device == mount.device and one.root != place)
                yield from (os.fsdecode(one.point) for one in parts if _inside(one.root, place))


def _aliased(mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    # if several mounts have the same point, the last one is visible
    shown = tuple({mount.point: mount for mount in mounts}.values())
    return tuple(
        one
        for one in shown
        if any(
            other != one
            and other.device == one.device
            and (_inside(one.root, other.root) or _inside(other.root, one.root))
            for other in shown
        )
    )


def _moved(path: bytes, old: bytes, new: bytes) -> bytes:
    """Replace the prefix `old` of a path by `new`. `path` must be `old` or below it."""
    rest = path[len(old.rstrip(b"/")) :].strip(b"/")
    return b"/".join((new.rstrip(b"/"), rest)).rstrip(b"/") or b"/"


def in_memory(directories: Iterable[Path]) -> tuple[Path, ...]:
    """Return the directories (absolute, resolved) whose files are stored in memory."""
    mounts = MountTable.read()
    return tuple(place for place in directories if mounts.in_memory(os.fsencode(place)))


def inner_mounts(roots: tuple[Path, ...], table: MountTable) -> Iterable[str]:
    """Yield mount points inside the roots, which an overlay would not show. Each belongs to the innermost root that
    contains it."""
    for root in roots:
        inner_roots = [inner for inner in roots if inner != root and inner.is_relative_to(root)]
        for raw in table.below(os.fsencode(root)):
            point = Path(os.fsdecode(raw))
            if not any(point.is_relative_to(inner) for inner in inner_roots):
                yield str(point)


def _inside(path: bytes, directory: bytes) -> bool:
    return path == directory or path.startswith(directory.rstrip(b"/") + b"/")


@lru_cache(maxsize=4)
def _table(text: bytes) -> MountTable:
    """Parse the table. The result is cached, because every command reads the table several times and it changes
    rarely."""
    return MountTable.of_mounts(_parse(text.splitlines()))


def _parse(lines: Iterable[bytes]) -> Iterable[Mount]:
    for line in lines:
        fields = line.split(b" ")
        if b"-" not in fields:
            continue
        kind = fields[fields.index(b"-") + 1].decode("ascii", "replace")
        yield Mount(int(fields[0]), unescaped(fields[4]), kind, fields[2], unescaped(fields[3]))


def unescaped(field: bytes) -> bytes:
    """Decode a path of the table, in which blanks and backslashes are written in octal."""
    return _OCTAL.sub(lambda match: bytes([int(match.group(1), 8)]), field)
