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
both of its times is not read again (`base.same_version`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from artoo.contracts.changes import Conflict, Node
from artoo.sandbox.reading.path_set import upwards
from artoo.workspace.changes.base import Base, same_version
from artoo.workspace.changes.effect import Effect
from artoo.workspace.files.walker import Walker
from artoo.workspace.fs.names import text_of
from artoo.workspace.fs.stat import NodeState

_APPEARED = "it appeared since the task began"
_GONE = "it was removed since the task began"
_CHANGED = "it was changed since the task began"
_OVERTAKEN = "it was changed while a command of the task ran that changes it too"
_MOVED = "the place that it is moved to is in conflict"
_HOMELESS = "the directory that it belongs in is not there"
_HOLDS = "it holds a path that is in conflict"
_CHANGED_METADATA = "its mode, owner or attributes were changed since the task began"


@dataclass(frozen=True, slots=True)
class Compared:
    """The effects that can be applied, in path order, and the reasons why others conflict."""

    effects: tuple[Effect, ...] = ()
    conflicts: Mapping[Effect, str] = field(default_factory=dict[Effect, str])

    def described(self) -> list[Conflict]:
        """Return the conflicts for the user."""
        return [Conflict(path=effect.shown, reason=reason) for effect, reason in self.conflicts.items()]

    def without(self, taken: Collection[bytes]) -> Compared:
        """Return it without these paths."""
        conflicts = {effect: reason for effect, reason in self.conflicts.items() if effect.path not in taken}
        return Compared(tuple(one for one in self.effects if one.path not in taken), conflicts)


def compare(effects: Iterable[Effect], bases: Mapping[str, Base | None], files: Walker) -> Compared:
    """Compare path by path. Reads the user's `files` where metadata do not decide. Blocking.

    What changes after a file was read is found by the commit, which compares states.
    """
    kept: list[Effect] = []
    conflicts: dict[Effect, str] = {}
    going = set[bytes]()
    for effect in effects:
        base = bases.get(effect.shown)
        if effect.after is None or effect.removes_directory:
            going.add(effect.path)
        homeless = effect.path.rpartition(b"/")[0] in going
        if _unchanged_by_task(effect, base, homeless):
            continue
        reason = _conflict(effect, base, files)
        if reason is None:  # an approval is for replacing exactly this content
            replaced = None if effect.before is None else base
            kept.append(effect if replaced is None else effect._replace(before_digest=replaced.sha256))
        elif not (_already_done(effect) or _only_times(effect, base)):
            conflicts[effect] = reason
    return Compared(tuple(kept), conflicts)


def with_dependents(found: Compared, all_effects: Iterable[Effect]) -> Compared:
    """Add conflicts for everything that cannot be applied without a path in conflict; the rest can be applied."""
    made = {effect.path for effect in all_effects if effect.makes_directory}
    while more := _stuck(found, made):
        kept = tuple(effect for effect in found.effects if effect not in more)
        found = replace(found, effects=kept, conflicts={**found.conflicts, **more})
    return found


def _stuck(found: Compared, made: set[bytes]) -> dict[Effect, str]:
    """Return effects that need what is in conflict. `made`: directories that the user has not."""
    absent = made - {effect.path for effect in found.effects}
    if not found.conflicts and not absent:
        return {}
    # Contents that arrive only at paths in conflict: removing them elsewhere would lose them.
    arriving = {one.digest for one in found.conflicts if one.after is not None and one.after.size}
    arriving -= {None, *(one.digest for one in found.effects)}
    holding = {above for one in found.conflicts for above in upwards(text_of(one.shown))}
    more: dict[Effect, str] = {}
    for effect in found.effects:
        if effect.after is not None and effect.path.rpartition(b"/")[0] in absent:
            more[effect] = _HOMELESS
        elif effect.after is None and effect.before_digest in arriving:
            more[effect] = _MOVED
        elif effect.removes_directory and text_of(effect.shown) in holding:
            more[effect] = _HOLDS
    return more


def _unchanged_by_task(effect: Effect, base: Base | None, homeless: bool) -> bool:
    """True if the task's version is the base. `homeless`: the directory that holds the path is deleted."""
    wanted, real = effect.after, effect.before
    if base is None:
        # The user made it, both made it, or the workspace holds a copy of what the task never changed.
        if wanted is None or real is None:
            return wanted is real or (wanted is None and not homeless)
        return effect.in_place or (wanted.is_directory and real.is_directory)
    return _only_times(effect, base) and (
        wanted is not None and (wanted.is_directory or wanted.mtime_ns == base.was.mtime_ns)
    )


def _only_times(effect: Effect, base: Base | None) -> bool:
    """True if the task changed at most times: then the user's version stays, and there is nothing to choose."""
    wanted = effect.after
    if base is None or wanted is None or wanted.node is not base.was.node or not wanted.same_metadata(base.was):
        return False
    if wanted.node is Node.FILE:
        return base.sha256 is not None and effect.digest == base.sha256
    return wanted.is_directory or _same_thing(wanted, base.was)


def _already_done(effect: Effect) -> bool:
    """True if the user did the same: content and metadata are equal, whatever the times are."""
    return (
        effect.in_place
        and effect.before is not None
        and effect.after is not None
        and effect.before.same_metadata(effect.after)
    )


def _conflict(effect: Effect, base: Base | None, files: Walker) -> str | None:
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
    return None if real.is_directory or _same_content(effect, real, base, files) else _CHANGED


def _same_content(effect: Effect, real: NodeState, base: Base, files: Walker) -> bool:
    if real.node is not Node.FILE:
        return _same_thing(real, base.was)
    if same_version(base.was, real):
        return True
    if base.sha256 is None or real.size != base.was.size:  # None: it can be read neither then nor now
        return False
    return files.digest(text_of(effect.shown), real) == base.sha256


def _same_thing(state: NodeState, was: NodeState) -> bool:
    return (state.target, state.rdev) == (was.target, was.rdev)
