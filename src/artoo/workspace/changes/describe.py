"""Turns effects into change records: from what was read to what is shown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from artoo.contracts.changes import Change, ChangeKind, Node, Trait, printable_path
from artoo.ports.workspace import Files
from artoo.workspace.changes.effect import Effect
from artoo.workspace.changes.links import leads_out
from artoo.workspace.changes.path_class import Places
from artoo.workspace.fs.stat import NodeState

_BOOKKEEPING = re.compile(rb"/\.git/(?!(hooks|config|config\.worktree|info|modules)(/|$))")
"""What git writes by itself in a repository: no reader wants a line for each object."""
_SPECIAL = frozenset({Node.FIFO, Node.SOCKET, Node.DEVICE})


def describe(effects: Iterable[Effect], places: Places, files: Files) -> tuple[Change, ...]:
    """Return one change for each effect, in the same order. `files`: where links are followed."""
    listed = list(effects)
    going = Counter(_identity(effect) for effect in listed if not effect.in_place)
    return tuple(_change(effect, places, files, going) for effect in listed)


def _identity(effect: Effect) -> tuple[int, int] | None:
    """Return what identifies the user's file, by whichever of its names."""
    return None if effect.before is None else (effect.before.device, effect.before.inode)


def _change(effect: Effect, places: Places, files: Files, going: Mapping[tuple[int, int] | None, int]) -> Change:
    before, after = effect.before, effect.after
    here = after or before
    assert here is not None
    return Change(
        kind=_kind(effect),
        path=effect.shown,
        node=here.node,
        before=before.node if before is not None else None,
        path_class=places.classify(effect.path),
        size_before=before.size if before is not None and before.node is Node.FILE else None,
        size_after=after.size if after is not None and after.node is Node.FILE else None,
        content_sha256=effect.digest,
        detail=_detail(effect, going[_identity(effect)]),
        traits=tuple(sorted(_traits(effect, places, files))),
    )


def _kind(effect: Effect) -> ChangeKind:
    if effect.after is None:
        return ChangeKind.DELETED
    if effect.in_place:
        return ChangeKind.METADATA
    if effect.after.node in _SPECIAL:
        return ChangeKind.SPECIAL
    if effect.after.node is Node.LINK:
        return ChangeKind.LINK
    return ChangeKind.CREATED if effect.before is None else ChangeKind.OVERWRITTEN


def _traits(effect: Effect, places: Places, files: Files) -> Iterable[Trait]:
    before, after = effect.before, effect.after
    if _BOOKKEEPING.search(effect.path):
        yield Trait.GIT_BOOKKEEPING
    if before is not None and before.node is not Node.DIRECTORY and before.links > 1:
        yield Trait.HARD_LINKED
    if after is None:
        return
    if effect.in_place and before is not None and before.same_metadata(after):
        yield Trait.TIMES_ONLY
    if after.node is not Node.LINK and _grants_privilege(before, after):
        yield Trait.PRIVILEGED
    if before is not None and before.node is after.node is Node.FILE and _is_widened(before, after):
        yield Trait.WIDENED
    if after.node is Node.LINK and leads_out(effect.path, after.target, places, files):
        yield Trait.POINTS_OUTSIDE


def _grants_privilege(before: NodeState | None, after: NodeState) -> bool:
    """True if set-user-id, set-group-id on a file, or file capabilities are new."""
    if not after.xattrs and not after.mode & 0o6000:
        return False
    had = {name for name, _ in before.xattrs} if before is not None else set[str]()
    gains_capability = any(name == "security.capability" and name not in had for name, _ in after.xattrs)
    bits = 0o4000 if after.node is Node.DIRECTORY else 0o6000
    new_bits = after.mode & bits & ~(before.mode if before is not None else 0)
    return gains_capability or bool(new_bits)


def _is_widened(before: NodeState, after: NodeState) -> bool:
    """True if someone may do more with a file than before, or its owner changes."""
    return bool(after.mode & ~before.mode) or (before.uid, before.gid) != (after.uid, after.gid)


def _detail(effect: Effect, going: int) -> str:
    """`going`: how many names of the user's file are deleted or replaced."""
    before, after = effect.before, effect.after
    parts: list[str] = []
    if before is not None and after is not None:
        parts += _differences(before, after)
    for state, words in ((before, "was a link to"), (after, "link to")):
        if state is not None and state.node is Node.LINK:
            parts.append(f"{words} {printable_path(state.target)}")
    if after is not None and before is None and after.mode & 0o7000:
        parts.append(f"mode {after.mode:04o}")
    if before is not None and before.links > 1 and before.node is Node.FILE:
        others = before.links - (1 if effect.in_place else going)
        share = "change with it" if effect.in_place else "keep the old content"
        parts += [f"has {others} other hard link(s), which {share}"] if others > 0 else []
    return "; ".join(parts)


def _differences(before: NodeState, after: NodeState) -> list[str]:
    parts: list[str] = []
    if before.node is not after.node:
        parts.append(f"{before.node} becomes {after.node}")
    if before.mode != after.mode and after.node is not Node.LINK:
        parts.append(f"mode {before.mode:04o} -> {after.mode:04o}")
    if (before.uid, before.gid) != (after.uid, after.gid):
        parts.append(f"owner {before.uid}:{before.gid} -> {after.uid}:{after.gid}")
    if before.xattrs != after.xattrs:
        names = sorted({name for name, _ in set(before.xattrs) ^ set(after.xattrs)})
        parts.append(f"attributes {', '.join(names)}")
    if not parts and before.node is after.node is Node.FILE and before.mtime_ns != after.mtime_ns:
        parts.append("time" if before.size == after.size else "")
    return [part for part in parts if part]
