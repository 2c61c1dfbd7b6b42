"""Places with more than one name: file systems of which the same part is mounted twice (`mount --bind`, volumes).

A rule about paths holds for each name of a place, or it is no rule.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from artoo.sandbox.reading.mount_table import Mount, MountTable
from artoo.sandbox.reading.path_set import PathSet, inside, upwards


@dataclass(frozen=True, slots=True)
class Alias:
    """What is below `there` is below `here`, too. `point`: where the mount begins that shows `here`. Real paths."""

    here: str
    there: str
    point: str


@dataclass(frozen=True, slots=True)
class Aliases:
    """Those that matter to somebody, by the place from which they lead."""

    by_there: dict[str, tuple[Alias, ...]]

    @classmethod
    def of(cls, listed: Iterable[Alias]) -> Aliases:
        """Of these."""
        found: dict[str, tuple[Alias, ...]] = {}
        for one in listed:
            found[one.there] = (*found.get(one.there, ()), one)
        return cls(found)

    def names(self, path: str) -> Iterator[tuple[str, Alias]]:
        """The other names of a real path, each with what says so."""
        if self.by_there:
            for above in upwards(path):
                for alias in self.by_there.get(above, ()):
                    yield _moved(path, alias.there, alias.here), alias

    def elsewhere(self, places: tuple[str, ...], *, parts: bool = True) -> Iterator[tuple[str, Alias]]:
        """Where these places (real) are seen, too, as far as something is there that can be covered.

        `parts`: also where only a part of one is seen.
        """
        if not self.by_there:
            return
        known = PathSet(places)
        for alias in (one for listed in self.by_there.values() for one in listed):
            seen: list[str] = []
            if known.cover(alias.here) and alias.here not in known:
                seen += [alias.there] if parts else []
            elif known.lie_in(alias.here):
                seen += (_moved(one, alias.here, alias.there) for one in places if inside(one, alias.here))
            yield from ((one, alias) for one in seen if os.path.lexists(one) and not os.path.islink(one))


@lru_cache(maxsize=4)
def aliases_in(table: MountTable) -> tuple[Alias, ...]:
    """All that a table of mounts makes, in both directions, but for what other mounts hide."""
    shown = {mount.point: mount for mount in table.mounts}  # of several at one point, the last is seen
    by_root: dict[tuple[bytes, bytes], list[Mount]] = {}
    for mount in shown.values():
        by_root.setdefault((mount.device, mount.root), []).append(mount)
    pairs = (
        pair
        for inner in shown.values()
        for root in map(os.fsencode, upwards(os.fsdecode(inner.root)))
        for outer in by_root.get((inner.device, root), ())
        if outer is not inner
        for pair in _pairs(inner, outer)
    )
    return tuple(dict.fromkeys(one for one in pairs if one.here != one.there and _is_one(one)))


def _pairs(inner: Mount, outer: Mount) -> Iterator[Alias]:
    """The mount of a part of what another one shows, seen from either."""
    part, whole = os.fsdecode(inner.point), os.fsdecode(outer.point)
    within = _moved(os.fsdecode(inner.root), os.fsdecode(outer.root), whole)
    yield Alias(within, part, whole)
    yield Alias(part, within, part)


def _is_one(alias: Alias) -> bool:
    """Another mount may lie over either."""
    try:
        return os.path.samestat(os.lstat(alias.here), os.lstat(alias.there))
    except OSError:
        return False


def _moved(path: str, old: str, new: str) -> str:
    """The same path below another directory; `path` is `old`, or below it."""
    rest = path[len(old.rstrip("/")) :].strip("/")
    return f"{new.rstrip('/')}/{rest}".rstrip("/") or "/"
