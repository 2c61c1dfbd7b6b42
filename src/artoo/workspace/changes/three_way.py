"""Compares base, user's version and task's version of every path: what the task really changed, and what conflicts.

| task's version | user's version now | becomes |
|---|---|---|
| as the base | anything | nothing: in the end the task did not change it |
| anything else | as the task's | nothing: it is done already |
| anything else | as the base | an effect |
| anything else | anything else | a conflict: the user's version stays |
| a new path in a directory that is not there | nothing | a conflict |
| deleted: a directory that holds a conflict, or a file whose new place is one | as the base | a conflict too |
| only times of a file or link differ from the base | anything else | nothing: the user's version stays |

The base is what the task found when it first changed a path; a path without one was not there. Contents are
compared by their sha256: a clock may be set, and its ticks are long. Only a file with the base's inode, size and
both of its times is not read again (`base.unchanged_since`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from artoo.contracts.changes import Conflict, Node
from artoo.workspace.changes.base import Base, UserFiles, same_version
from artoo.workspace.changes.effect import Effect
from artoo.workspace.fs.stat import NodeState

_APPEARED = "it appeared since the task began"
_GONE = "it was removed since the task began"
_CHANGED = "it was changed since the task began"
_OVERTAKEN = "it was changed while a command of the task ran that changes it too"
_MOVED = "the place that it is moved to is in conflict"
_HOMELESS = "the directory that it belongs in is not there"
_HOLDS = "it holds a path that is in conflict"
_CHANGED_METADATA = "its mode, owner or attributes were changed since the task began"

Clashes = tuple[tuple[Effect, Conflict], ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """What can be applied, in path order, and what conflicts."""

    effects: tuple[Effect, ...] = ()
    conflicts: Clashes = ()


def compare(effects: Iterable[Effect], bases: Mapping[str, Base]) -> Compared:
    """Compare path by path. Reads the user's files where neither metadata nor the effect decides. Blocking.

    What changes after a file was read is found by the commit, which compares states.
    """
    kept: list[Effect] = []
    conflicts: list[tuple[Effect, Conflict]] = []
    going = set[bytes]()
    for effect in effects:
        base = bases.get(effect.shown)
        if effect.after is None or _removes_directory(effect):
            going.add(effect.path)
        homeless = effect.path.rpartition(b"/")[0] in going
        if _unchanged_by_task(effect, base, homeless):
            continue
        reason = _conflict(effect, base)
        if reason is None:
            kept.append(_bound_to(effect, base))
        elif not (_already_done(effect) or _only_times(effect, base)):
            conflicts.append((effect, Conflict(path=effect.shown, reason=reason)))
    return Compared(tuple(kept), tuple(conflicts))


def with_dependents(found: Compared, all_effects: Iterable[Effect], bases: Mapping[str, Base]) -> Compared:
    """Add conflicts for everything that cannot be applied without a path in conflict; the rest can be applied."""
    missing = _missing_directories(all_effects)
    if not found.conflicts and not missing:
        return found
    while (more := _one_step(found, bases, missing)) != found:
        found = more
    return found


def _one_step(found: Compared, bases: Mapping[str, Base], missing: frozenset[bytes]) -> Compared:
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
    return Compared(tuple(kept), tuple(conflicts))


def _stuck(found: Compared) -> set[str]:
    """Return contents that arrive only at paths in conflict: removing them elsewhere would lose them."""
    arriving = {effect.digest for effect, _ in found.conflicts if effect.after is not None and effect.after.size}
    arriving.difference_update(effect.digest for effect in found.effects)
    return {digest for digest in arriving if digest is not None}


def _missing_directories(effects: Iterable[Effect]) -> frozenset[bytes]:
    """Return directories of the workspace of which the user has none."""
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


def _bound_to(effect: Effect, base: Base | None) -> Effect:
    """Return the effect with the sha256 of what it replaces: an approval is for replacing exactly that."""
    digest = None if base is None or effect.before is None else base.sha256
    return effect._replace(before_digest=digest)


def _unchanged_by_task(effect: Effect, base: Base | None, homeless: bool) -> bool:
    """True if the task's version is the base. `homeless`: the directory that holds the path is deleted."""
    wanted, real = effect.after, effect.before
    if base is None:
        # The user made it, both made it, or the workspace holds a copy of what the task never changed.
        if wanted is None or real is None:
            return wanted is real or (wanted is None and not homeless)
        return effect.in_place or (wanted.is_directory and real.is_directory)
    if wanted is None or not wanted.same_metadata(base.was) or wanted.node is not base.was.node:
        return False
    if wanted.node is Node.FILE:
        return effect.digest == base.sha256 and wanted.mtime_ns == base.was.mtime_ns
    return wanted.is_directory or (_same_thing(wanted, base.was) and wanted.mtime_ns == base.was.mtime_ns)


def _only_times(effect: Effect, base: Base | None) -> bool:
    """True if the task changed only times: then the user's version stays, and there is nothing to choose."""
    wanted = effect.after
    if base is None or wanted is None or wanted.node is not base.was.node or not wanted.same_metadata(base.was):
        return False
    if wanted.node is Node.FILE:
        return base.sha256 is not None and effect.digest == base.sha256
    return not wanted.is_directory and _same_thing(wanted, base.was)


def _already_done(effect: Effect) -> bool:
    """True if the user did the same: content and metadata are equal, whatever the times are."""
    return (
        effect.in_place
        and effect.before is not None
        and effect.after is not None
        and effect.before.same_metadata(effect.after)
    )


def _conflict(effect: Effect, base: Base | None) -> str | None:
    real = effect.before
    if base is None:
        return None if real is None else _APPEARED
    if real is None:
        return _GONE
    if real.node is not base.was.node:
        return _CHANGED
    if not real.same_metadata(base.was):
        return _CHANGED_METADATA
    if base.overtaken:
        return _OVERTAKEN
    return None if real.is_directory or _same_content(effect, real, base) else _CHANGED


def _same_content(effect: Effect, real: NodeState, base: Base) -> bool:
    if real.node is not Node.FILE:
        return _same_thing(real, base.was)
    if same_version(base.was, real):
        return True
    if base.sha256 is None or real.size != base.was.size:  # None: it can be read neither then nor now
        return False
    with UserFiles() as files:
        return (effect.before_digest or files.digest(effect.shown, real)) == base.sha256


def _same_thing(state: NodeState, was: NodeState) -> bool:
    return (state.target, state.rdev) == (was.target, was.rdev)
