"""All that a task changed, read from its view: classified, in order of danger, and bound to a digest.

    the trunk beside the real files ─► scan ─► three_way ─► describe ─► git_history, classes ─► Difference

Only what the view's layers hold is read, and of the person's files what stands at the same paths.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from artoo.contracts.changes import (
    Change,
    ChangeKind,
    Conflict,
    Node,
    PathClass,
    digest_of,
    path_bytes,
)
from artoo.contracts.settling import ChangeClass, ClassifiedChange
from artoo.ports.sandbox import MIB
from artoo.ports.world import Files
from artoo.world.base import Base, read_base, unchanged_since
from artoo.world.caches import judge_caches
from artoo.world.classes import BOUNDS, classified
from artoo.world.classify import Places
from artoo.world.describe import describe
from artoo.world.git_configured import judge_configured
from artoo.world.git_history import Lost, judge_repositories
from artoo.world.git_takeover import with_takeover
from artoo.world.git_unit import Unit, units_of
from artoo.world.nodes import NodeState
from artoo.world.scan import Effect, scan
from artoo.world.three_way import TOGETHER, compared
from artoo.world.union import RealFiles, Union
from artoo.world.verdict import Verdict
from artoo.world.view_place import TRUNK, ViewPlace, lineage

MOST_PATHS = 500_000
FLOOD_BYTES = 256 * MIB
FLOOD_PATHS = 5_000
_OWN = "artoo's own files are out of reach of tasks"


@dataclass(frozen=True, slots=True)
class Difference:
    """`effects`, `changes` and `classes` go together, in path order; conflicts are not among them.

    `digest` (sha256, hex) is that of this exact difference: what would be there, and what it would replace. `lost`
    is what repositories lose, by their directory. `flood`: there is so much that it is asked about. `units`: what
    of a repository goes together. Conflicts that are none but for others come last.
    """

    effects: tuple[Effect, ...] = ()
    changes: tuple[Change, ...] = ()
    classes: tuple[ClassifiedChange, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    digest: str = ""
    flood: str | None = None
    lost: Mapping[Path, Lost] = field(default_factory=dict[Path, Lost])
    units: tuple[Unit, ...] = ()

    @property
    def empty(self) -> bool:
        """Nothing was changed that is not there already."""
        return not self.effects and not self.conflicts

    @property
    def silent(self) -> bool:
        """Whether nothing of it needs consent."""
        loud = any(one.change_class is not ChangeClass.SILENT for one in self.classes)
        return not loud and not self.conflicts and self.flood is None


def difference_of(place: ViewPlace, artoo_home: Path, layer: str = TRUNK) -> Difference:
    """The difference that the view holds against the real files now; that of a fork's `layer` against what the view
    holds, with what is in conflict with the real files. Blocking.

    Raises SandboxError when it cannot be read completely.
    """
    layers = place.layers_of(layer)
    if not layers:
        return Difference()
    record = place.record()
    places = Places.of(record.roots, artoo_home)
    before, after = _looks(place, layer)
    own = read_base(place.base_file(layer))
    scanned = scan(layers, MOST_PATHS, unchanged_since(own))
    bases = own | _bases_above(place, layer, scanned)
    found = compared(scanned, bases, lambda effects: units_of(effects, before, after))
    meant = _meant(found.effects, places, bases, before, after)
    units, apart = found.units if layer == TRUNK else (), places.worked_in
    conflicts = (
        *with_takeover(found.conflicts, units, (before, after), record.head, apart),
        *meant.conflicts,
    )
    return replace(
        meant,
        conflicts=tuple(sorted(conflicts, key=lambda one: (one.reason == TOGETHER, one.path))),
        digest=_digest(meant.changes, bases, conflicts),
        flood=flood_of(meant.changes),
        units=found.units,
    )


def _looks(place: ViewPlace, layer: str) -> tuple[Files, Files]:
    """Below a layer, and with it."""
    above = lineage(layer)[1:2]
    before = Union(place.strata(above[0])) if above else RealFiles()
    return before, Union(place.strata(layer))


def _bases_above(place: ViewPlace, layer: str, effects: Sequence[Effect]) -> dict[str, Base]:
    """What the layers below a fork know of the person's own files that it changes, the lowest one's word first."""
    found: dict[str, Base] = {}
    real = frozenset(effect.shown for effect in effects if effect.real)
    for name in lineage(layer)[1:]:
        found |= {path: base for path, base in read_base(place.base_file(name)).items() if path in real}
    return found


def changed_meanwhile(place: ViewPlace, layer: str, effects: Sequence[Effect]) -> frozenset[str]:
    """Of what a layer changes the files that somebody else changed too since it first did. Blocking: for whoever
    tells what was changed. Of very many changes none are looked at. Raises SandboxError."""
    if len(effects) > FLOOD_PATHS:
        return frozenset()
    bases = read_base(place.base_file(layer)) | _bases_above(place, layer, effects)
    clashing = (effect for effect, _ in compared(effects, bases).conflicts)
    return frozenset(one.shown for one in clashing if not any(map(_is_directory, (one.before, one.after))))


def _is_directory(state: NodeState | None) -> bool:
    return state is not None and state.is_directory


def classes_in(place: ViewPlace, layer: str, artoo_home: Path) -> tuple[ClassifiedChange, ...]:
    """What the changes of one layer mean, of a fork before it is joined: against what is below it. Blocking.

    Raises SandboxError when it cannot be read completely.
    """
    layers = place.layers_of(layer)
    if not layers:
        return ()
    places, bases = Places.of(place.record().roots, artoo_home), read_base(place.base_file(layer))
    return _meant(scan(layers, MOST_PATHS), places, bases, *_looks(place, layer)).classes


def _meant(
    found: Sequence[Effect], places: Places, bases: Mapping[str, Base], before: Files, after: Files
) -> Difference:
    """What these effects are and mean; in conflict are those on artoo's own files. Without a digest."""
    caches = judge_caches(found, before, after)
    effects = [effect for effect in found if effect.path not in caches.left_out]
    described = list(zip(effects, describe(effects, places, after), strict=True))
    reachable = [effect for effect, change in described if change.path_class is not PathClass.ARTOO]
    changes = tuple(change for _, change in described if change.path_class is not PathClass.ARTOO)
    own = (change.path for _, change in described if change.path_class is PathClass.ARTOO)
    git = judge_repositories(reachable, before, after, places.worked_in)
    configured = judge_configured(reachable, Path(os.fsdecode(places.home)), places.worked_in)
    return Difference(
        effects=tuple(reachable),
        changes=changes,
        classes=_classes(reachable, changes, places, bases, {**caches.says, **configured, **git.says}),
        conflicts=tuple(Conflict(path=path, reason=_OWN) for path in own),
        lost=git.lost,
    )


def _classes(
    effects: Sequence[Effect],
    changes: Sequence[Change],
    places: Places,
    bases: Mapping[str, Base],
    says: Mapping[bytes, Verdict],
) -> tuple[ClassifiedChange, ...]:
    moved = moves(changes, bases)
    return tuple(
        classified(
            change,
            within=change.path_class in BOUNDS or places.within_bounds(effect.path),
            moved_to=moved.get(change.path),
            says=says.get(effect.path),
        )
        for effect, change in zip(effects, changes, strict=True)
    )


def moves(changes: Sequence[Change], bases: Mapping[str, Base]) -> dict[str, str]:
    """Where the content of deleted files stands now: nothing of them is lost but the place.

    A directory is moved when everything in it is, and there was something in it. An empty file is moved only to one
    of the same name: anything empty would be like it.
    """
    if not any(change.kind is ChangeKind.DELETED for change in changes):
        return {}
    arrived: dict[str, list[str]] = {}
    for change in changes:
        if change.content_sha256 is not None and change.kind in (ChangeKind.CREATED, ChangeKind.OVERWRITTEN):
            arrived.setdefault(change.content_sha256, []).append(change.path)
    gone: dict[str, list[Change]] = {}
    for change in changes:
        base = bases.get(change.path)
        was = base.sha256 if base is not None and change.before is Node.FILE else None
        if change.kind is ChangeKind.DELETED and was is not None and was in arrived:
            gone.setdefault(was, []).append(change)
    found: dict[str, str] = {}
    for content, files in gone.items():
        found |= _paired(files, arrived[content])
    return found | _moved_directories(changes, found)


def _paired(gone: Sequence[Change], arrived: Sequence[str]) -> dict[str, str]:
    """Files of one content, each with where it stands now: its own name first, else a place of its own as long as
    there are any. Of copies that were brought together the last ones share one."""
    by_name: dict[str, list[str]] = {}
    for path in arrived:
        by_name.setdefault(_name(path), []).append(path)
    found = {one.path: named.pop(0) for one in gone if (named := by_name.get(_name(one.path)))}
    taken = set(found.values())
    free = (path for path in arrived if path not in taken)
    others = (one for one in gone if one.path not in found and one.size_before)
    return found | {one.path: next(free, arrived[0]) for one in others}


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _moved_directories(changes: Sequence[Change], moved: Mapping[str, str]) -> dict[str, str]:
    gone = [one for one in changes if one.kind is ChangeKind.DELETED]
    emptied: dict[str, str] = {}
    lossy: set[str] = set()
    for file in (one for one in gone if one.before is not Node.DIRECTORY):
        target = moved.get(file.path)
        for above in map(str, Path(file.path).parents):
            if target is None:
                lossy.add(above)
            else:
                emptied.setdefault(above, os.path.dirname(target))
    directories = (one.path for one in gone if one.before is Node.DIRECTORY)
    return {path: emptied[path] for path in directories if path in emptied and path not in lossy}


def _digest(changes: Sequence[Change], bases: Mapping[str, Base], conflicts: Sequence[Conflict]) -> str:
    """What is new by the changes' own digest; what is old by the content that the view found."""
    total = hashlib.sha256(digest_of(changes).encode())
    for change in changes:
        base = bases.get(change.path)
        old = "-" if base is None else f"{base.was.node} {base.sha256} {base.was.target}"
        total.update(path_bytes(change.path) + b"\0" + old.encode() + b"\n")
    for conflict in conflicts:
        total.update(b"!" + path_bytes(conflict.path) + b"\n")
    return total.hexdigest()


def flood_of(changes: Sequence[Change]) -> str | None:
    """Why there is so much that it is asked about; None when there is not."""
    total = sum(change.size_after or 0 for change in changes)
    if total > FLOOD_BYTES:
        return f"{total / MIB:,.0f} MiB of data are written"
    if len(changes) > FLOOD_PATHS:
        return f"{len(changes):,} paths change"
    return None
