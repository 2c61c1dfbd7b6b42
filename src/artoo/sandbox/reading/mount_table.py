"""The mount table: what is mounted inside a root, and by which other names a place is seen (`mount --bind`).

An overlay shows one file system, so what is mounted inside a root must be mounted again. A rule about paths holds
for each name of a place, or it is no rule.
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
    """One line of mountinfo: what of a file system (`root`, as it names it itself; `device`) is seen at `point`."""

    identifier: int
    point: bytes
    type: str
    device: bytes = b""
    root: bytes = b"/"


@dataclass(frozen=True, slots=True)
class MountTable:
    """Mounts in the order in which they were made; later ones cover earlier ones."""

    mounts: tuple[Mount, ...]
    aliased: tuple[Mount, ...] = ()
    """Mounts that show what another one shows too, at least in part."""

    @classmethod
    def of_mounts(cls, mounts: Iterable[Mount]) -> MountTable:
        """The table of these mounts."""
        listed = tuple(mounts)
        return cls(listed, _aliased(listed))

    @classmethod
    def read(cls, source: Path = Path("/proc/self/mountinfo")) -> MountTable:
        """The table of this process; empty where the system has none (macOS)."""
        try:
            text = source.read_bytes()
        except OSError:
            return cls(())
        return _table(text)

    def of(self, path: bytes) -> int | None:
        """The identifier of the mount that holds `path` (absolute, real), None when unknown."""
        best = self._holding(path)
        return best.identifier if best else None

    def in_memory(self, path: bytes) -> bool:
        """Check whether what is at `path` (absolute, real) is gone after a reboot, as far as is known."""
        best = self._holding(path)
        return best is not None and best.type in _IN_MEMORY

    def type_of(self, path: bytes) -> str:
        """Return the type of the file system at `path` (absolute, real), empty when unknown."""
        best = self._holding(path)
        return best.type if best else ""

    def _holding(self, path: bytes) -> Mount | None:
        best: Mount | None = None
        for mount in self.mounts:
            if _inside(path, mount.point) and (best is None or len(mount.point) >= len(best.point)):
                best = mount
        return best

    def below(self, root: bytes) -> tuple[bytes, ...]:
        """Mount points strictly inside `root`, outermost first."""
        inner = {mount.point for mount in self.mounts if mount.point != root and _inside(mount.point, root)}
        return tuple(sorted(inner))

    def without(self, mounts: Iterable[Mount]) -> MountTable:
        """The table as if these mounts were not there."""
        gone = {mount.identifier for mount in mounts}
        return MountTable.of_mounts(mount for mount in self.mounts if mount.identifier not in gone)

    def other_names(self, path: str) -> tuple[str, ...]:
        """The other names of what is at a real path."""
        raw = os.fsencode(path)
        mount = self._holding(raw) if self.aliased else None
        if mount is None or mount not in self.aliased:
            return ()
        place = _moved(raw, mount.point, mount.root)
        others = (one for one in self.aliased if one != mount and one.device == mount.device)
        named = ((one, _moved(place, one.root, one.point)) for one in others if _inside(place, one.root))
        return tuple(os.fsdecode(name) for one, name in named if self._holding(name) == one)

    def by_every_name(self, paths: Iterable[str]) -> set[str]:
        """These real paths with their other names."""
        found = set(paths)
        return found.union(*map(self.other_names, found)) if self.aliased else found

    def places_of(self, mount: Mount) -> tuple[str, ...]:
        """Return the other places at which the content of a mount is seen."""
        return self.other_names(os.fsdecode(mount.point))

    def elsewhere(self, places: Iterable[str]) -> Iterator[str]:
        """Yield the other names of these places (real) or of parts of them, as far as something is there."""
        for path in places if self.aliased else ():
            yield from (name for name in self.other_names(path) if os.path.lexists(name))
            mount = self._holding(os.fsencode(path))
            if mount is not None:
                place = _moved(os.fsencode(path), mount.point, mount.root)
                parts = (one for one in self.aliased if one.device == mount.device and one.root != place)
                yield from (os.fsdecode(one.point) for one in parts if _inside(one.root, place))


def _aliased(mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    shown = tuple({mount.point: mount for mount in mounts}.values())  # of several, the last is seen
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
    """The same path below another directory; `path` is `old`, or below it."""
    rest = path[len(old.rstrip(b"/")) :].strip(b"/")
    return b"/".join((new.rstrip(b"/"), rest)).rstrip(b"/") or b"/"


def in_memory(directories: Iterable[Path]) -> tuple[Path, ...]:
    """Return the directories (absolute, real) of which the files take memory."""
    mounts = MountTable.read()
    return tuple(place for place in directories if mounts.in_memory(os.fsencode(place)))


def inner_mounts(roots: tuple[Path, ...], table: MountTable) -> Iterable[str]:
    """Mount points inside the roots that an overlay would not show; those in an inner root are that root's."""
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
    """Each command asks more than once, and it changes rarely."""
    return MountTable.of_mounts(_parse(text.splitlines()))


def _parse(lines: Iterable[bytes]) -> Iterable[Mount]:
    for line in lines:
        fields = line.split(b" ")
        if b"-" not in fields:
            continue
        kind = fields[fields.index(b"-") + 1].decode("ascii", "replace")
        yield Mount(int(fields[0]), unescaped(fields[4]), kind, fields[2], unescaped(fields[3]))


def unescaped(field: bytes) -> bytes:
    """Read a path as the table writes it: blanks and backslashes are in octal."""
    return _OCTAL.sub(lambda match: bytes([int(match.group(1), 8)]), field)
