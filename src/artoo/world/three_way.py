"""Base, real and wanted: what of a view's effects the task really changed, and what the person changed meanwhile.

| wanted (the view) | real (now) | becomes |
|---|---|---|
| as the base | anything | nothing: in the end the task did not change it |
| anything else | as wanted | nothing: it is done already |
| anything else | as the base | an effect |
| anything else | anything else | a conflict: the person's version stays |
| a place in a directory that is not there | nothing | a conflict |
| deleted: a directory that holds a conflict, or what is moved into one | as the base | a conflict too |
| state of a git repository of which something is in conflict (`git_unit`) | anything | a conflict too |
| only times of a file or link differ from the base | anything else | nothing: the person's version stays |
| a version of a fork's | a version of the view's own | an effect: nobody else changes that |
| a name of git's, with its directory | packed, as the base | an effect: git does so by itself |

The base is what the view found when it first changed a path; a path without one was not there. Contents are
compared by what is in them: a clock may be set, and a tick of it is long. Only what has the base's inode, size and
both of its times as well is not read again (`base.unchanged_since`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from artoo.contracts.changes import Conflict, Node, printable_path
from artoo.world.base import Base
from artoo.world.files import Reach
from artoo.world.git_head import packed_as
from artoo.world.git_index import INDEX
from artoo.world.git_layout import is_emptied, is_scratch
from artoo.world.git_unit import Unit
from artoo.world.journal import StateRecord
from artoo.world.nodes import NodeState, digest_file
from artoo.world.scan import Effect

_APPEARED = "it appeared since the task began"
_GONE = "it was removed since the task began"
_CHANGED = "it was changed since the task began"
_OVERTAKEN = "it was changed while a command of the task ran that changes it too"
_MOVED = "where it is moved to is in conflict"
_HOMELESS = "the directory that it belongs in is not there"
_HOLDS = "it holds what is in conflict"
TOGETHER = "it goes with what is in conflict in its repository"
_CHANGED_METADATA = "its mode, owner or attributes were changed since the task began"


@dataclass(frozen=True, slots=True)
class Compared:
    """What can be applied, in path order, and what stands in its way. `units`: what of it goes together."""

    effects: tuple[Effect, ...]
    conflicts: tuple[tuple[Effect, Conflict], ...]
    units: tuple[Unit, ...] = ()


def no_units(effects: Sequence[Effect]) -> tuple[Unit, ...]:
    """For what has no repository in it."""
    return ()


def compared(
    effects: Iterable[Effect],
    bases: Mapping[str, Base],
    units_of: Callable[[Sequence[Effect]], tuple[Unit, ...]] = no_units,
) -> Compared:
    """Reads real files where neither a look at their metadata decides nor their effects know. Blocking. Raises
    OSError. What changes after a file was read is found by the act, which compares states (`prepare`)."""
    listed = list(effects)
    with Reach() as reach:
        found = _compared(listed, bases, reach)
    found = replace(found, units=units_of([*found.effects, *(effect for effect, _ in found.conflicts)]))
    missing = _missing_directories(listed)
    if not found.conflicts and not missing:
        return found
    while (more := _with_what_depends(_together(found), bases, missing)) != found:
        found = more
    return found


def _together(found: Compared) -> Compared:
    """What is in conflict in a repository holds all that goes with it."""
    clashing = [effect.path for effect, _ in found.conflicts]
    held = {path for unit in found.units if any(map(unit.decides, clashing)) for path in unit.whole}
    conflicts = ((one, Conflict(path=one.shown, reason=TOGETHER)) for one in found.effects if one.path in held)
    kept = tuple(one for one in found.effects if one.path not in held)
    return replace(found, effects=kept, conflicts=(*found.conflicts, *conflicts))


def _compared(effects: Iterable[Effect], bases: Mapping[str, Base], reach: Reach) -> Compared:
    kept: list[Effect] = []
    conflicts: list[tuple[Effect, Conflict]] = []
    going: set[bytes] = set()
    for effect in effects:
        base = bases.get(effect.shown)
        if effect.after is None or _removes_directory(effect):
            going.add(effect.path)
        if effect.before is not None and not effect.real:
            kept.append(effect)
            continue
        homeless = effect.path.rpartition(b"/")[0] in going
        if _unchanged_by_the_task(effect, base, homeless):
            continue
        reason = _conflict(effect, base, reach)
        if reason is not None and _already_as_wanted(effect):
            continue
        if reason is not None and (_only_times(effect, base) or is_scratch(effect.path)):
            continue
        if reason is None:
            kept.append(_agreed(effect, None if base is None or effect.before is None else base.sha256))
        else:
            conflicts.append((effect, Conflict(path=effect.shown, reason=reason)))
    return Compared(tuple(kept), tuple(conflicts))


def _with_what_depends(found: Compared, bases: Mapping[str, Base], missing: frozenset[bytes]) -> Compared:
    """One step further: what cannot be without what is in conflict is so too. Then the rest can be applied."""
    absent = missing - {effect.path for effect in found.effects}
    stuck = _stuck(found)
    holding = {above for effect, _ in found.conflicts for above in _above(effect.path)}
    kept: list[Effect] = []
    conflicts = list(found.conflicts)
    for effect in found.effects:
        reason = None
        if effect.after is not None and effect.path.rpartition(b"/")[0] in absent:
            reason = _HOMELESS
        elif effect.after is None and (base := bases.get(effect.shown)) is not None and base.sha256 in stuck:
            reason = _MOVED
        elif effect.path in holding and _removes_directory(effect):
            reason = _HOLDS
        if reason is None:
            kept.append(effect)
        else:
            conflicts.append((effect, Conflict(path=effect.shown, reason=reason)))
    return replace(found, effects=tuple(kept), conflicts=tuple(conflicts))


def _stuck(found: Compared) -> set[str]:
    """Contents that stand at places in conflict only: what is moved there stays, half of a move is a loss."""
    arriving = {effect.digest for effect, _ in found.conflicts if effect.after is not None and effect.after.size}
    arriving.difference_update(effect.digest for effect in found.effects)
    return {digest for digest in arriving if digest is not None}


def _missing_directories(effects: Iterable[Effect]) -> frozenset[bytes]:
    """Where the view has directories, and there is none now."""
    return frozenset(
        effect.path
        for effect in effects
        if effect.after is not None
        and effect.after.is_directory
        and (effect.before is None or not effect.before.is_directory)
    )


def _removes_directory(effect: Effect) -> bool:
    before, after = effect.before, effect.after
    return before is not None and before.is_directory and (after is None or not after.is_directory)


def _above(path: bytes) -> Iterator[bytes]:
    while path := path.rpartition(b"/")[0]:
        yield path


def _agreed(effect: Effect, known: str | None) -> Effect:
    """The effect, bound to the content that it replaces: mostly it was read, and says so already."""
    if effect.before_digest == known and not effect.replaced_directory:
        return effect
    return effect._replace(replaced_directory=False, before_digest=known)


def _unchanged_by_the_task(effect: Effect, base: Base | None, homeless: bool) -> bool:
    """`homeless`: the directory that holds it goes, so that nothing can stay in it."""
    wanted, real = effect.after, effect.before
    if base is None:
        # Somebody else made it, both made it, or a layer holds a copy of what it never changed.
        if wanted is None or real is None:
            return wanted is real or (wanted is None and not homeless)
        return effect.in_place or (wanted.is_directory and real.is_directory)
    if wanted is None or wanted.node is not base.was.node:
        return False
    if not _same_metadata(wanted, base.was):
        return False
    if wanted.node is Node.FILE:
        # Git writes its index anew at every look: that the task looked is no change.
        same_time = wanted.mtime_ns == base.was.mtime_ns or _is_index(effect)
        return effect.digest == base.sha256 and same_time
    if wanted.is_directory:
        return not _tidied_by_git(effect, base)
    return _same_thing(wanted, base.was) and wanted.mtime_ns == base.was.mtime_ns


def _tidied_by_git(effect: Effect, base: Base) -> bool:
    """Whether nobody took away what is not there: `git gc` packs names and objects, and git runs it by itself."""
    if effect.before is not None or effect.after is None:
        return False
    if effect.after.is_directory:
        return is_emptied(effect.path)
    return base.sha256 is not None and packed_as(effect.path) == base.sha256


def _only_times(effect: Effect, base: Base | None) -> bool:
    """Whether the task left a thing what it was: then there is nothing to choose between it and the person's."""
    wanted = effect.after
    if base is None or wanted is None or wanted.node is not base.was.node or not _same_metadata(wanted, base.was):
        return False
    if wanted.node is Node.FILE:
        return base.sha256 is not None and effect.digest == base.sha256
    return not wanted.is_directory and _same_thing(wanted, base.was)


def _already_as_wanted(effect: Effect) -> bool:
    """Somebody else did the same: content and metadata are equal, whatever the clock said."""
    return (
        effect.in_place
        and effect.before is not None
        and effect.after is not None
        and effect.before.same_metadata(effect.after)
    )


def _conflict(effect: Effect, base: Base | None, reach: Reach) -> str | None:
    real = effect.before
    if base is None:
        return None if real is None else _APPEARED
    if real is None:
        return None if _tidied_by_git(effect, base) else _GONE
    if real.node is not base.was.node:
        return _CHANGED
    if not _same_metadata(real, base.was):
        return _CHANGED_METADATA
    if base.overtaken:
        return _OVERTAKEN
    return None if real.is_directory or _same_content(effect, real, base, reach) else _CHANGED


def _same_content(effect: Effect, real: NodeState, base: Base, reach: Reach) -> bool:
    if real.node is not Node.FILE:
        return _same_thing(real, base.was)
    if base.sha256 is None:  # it can be read neither then nor now
        return (real.inode, real.size, real.ctime_ns) == (base.was.inode, base.was.size, base.changed_ns)
    if real.size != base.was.size and not _is_index(effect):
        return False
    return (effect.before_digest or _digest(effect, reach)) == base.sha256


def _is_index(effect: Effect) -> bool:
    """Whether it may be git's, which says the same in other bytes (`git_index`)."""
    return effect.path.endswith(b"/" + INDEX.encode())


def _digest(effect: Effect, reach: Reach) -> str | None:
    """The sha256 of the real file of an effect; None when it cannot be read."""
    try:
        return digest_file(*reach.parent(*effect.place))
    except OSError:
        return None


def _same_thing(state: NodeState, was: StateRecord) -> bool:
    return (printable_path(state.target), state.rdev) == (was.target, was.rdev)


def _same_metadata(state: NodeState, was: StateRecord) -> bool:
    if (state.mode, state.uid, state.gid) != (was.mode, was.uid, was.gid):
        return False
    return dict(state.xattrs) == was.attributes() if state.xattrs or was.xattrs else True
