"""Turns effects into change records: from what was read to what is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from artoo.contracts.changes import Change, ChangeKind, Node, PathClass, Trait, printable_path
from artoo.ports.workspace import Files
from artoo.workspace.changes.effect import Effect
from artoo.workspace.changes.path_class import Places
from artoo.workspace.fs.stat import NodeState

_BOOKKEEPING = re.compile(rb"/\.git/(?!(hooks|config|config\.worktree|info|modules)(/|$))")
"""What git writes by itself in a repository: no reader wants a line for each object."""
_SPECIAL = frozenset({Node.FIFO, Node.SOCKET, Node.DEVICE})

_CACHES = frozenset(
    b"__pycache__ .eslintcache .hypothesis .import_linter_cache .ipynb_checkpoints .mypy_cache .parcel-cache .pyre"
    b" .pytest_cache .pytype .ruff_cache .sass-cache .stylelintcache .turbo".split()
)
_COMPILED = (b".pyc", b".pyo")


def without_caches(effects: Sequence[Effect]) -> list[Effect]:
    """Return the effects that count: compiled Python and caches of known tools stay in the workspace.

    A program that needs such a cache makes it again, and a cache that a task filled is code that nobody reviewed.
    Only the deletion of a whole cache directory, or of a compiled file by name, is a change like any other.
    """
    deleted = {effect.path for effect in effects if effect.after is None}
    counted: list[Effect] = []
    for effect in effects:
        cache = _cache_of(effect)
        compiled = effect.after is not None and effect.path.endswith(_COMPILED)
        if not compiled if cache is None else cache in deleted:
            counted.append(effect)
    return counted


def _cache_of(effect: Effect) -> bytes | None:
    """Return the path of the outermost cache directory that holds an effect."""
    parts = effect.relative.split(b"/")
    for number, part in enumerate(parts):
        if part in _CACHES and (number < len(parts) - 1 or effect.is_directory):
            return effect.root.rstrip(b"/") + b"/" + b"/".join(parts[: number + 1])
    return None


def describe(effects: Iterable[Effect], places: Places, files: Files) -> tuple[Change, ...]:
    """Return one change for each effect, in the same order. `files`: where links are followed."""
    return tuple(_change(effect, places, files) for effect in effects)


def _change(effect: Effect, places: Places, files: Files) -> Change:
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
        detail="; ".join(_detail(effect)),
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


def _traits(effect: Effect, places: Places, files: Files) -> Iterator[Trait]:
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
    if after.node is Node.LINK and _leads_out(effect, after, places, files):
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


def _leads_out(effect: Effect, link: NodeState, places: Places, files: Files) -> bool:
    """True if a link leads out of project and output folder, to a sensitive path in them, or in a circle.

    For the reader: any link is asked about.
    """
    try:
        end = files.resolve(Path(os.path.dirname(os.fsdecode(effect.path)), os.fsdecode(link.target)))
    except OSError:
        return True
    return places.classify(os.fsencode(end)) not in (PathClass.PROJECT, PathClass.WORKSPACE)


def _detail(effect: Effect) -> Iterator[str]:
    before, after = effect.before, effect.after
    if before is not None and after is not None:
        yield from _differences(before, after)
    for state, words in ((before, "was a link to"), (after, "link to")):
        if state is not None and state.node is Node.LINK:
            yield f"{words} {printable_path(state.target)}"
    if after is not None and before is None and after.mode & 0o7000:
        yield f"mode {after.mode:04o}"
    if before is not None and before.links > 1 and before.node is Node.FILE:
        yield f"has {before.links - 1} other hard link(s){', which change with it' if effect.in_place else ''}"


def _differences(before: NodeState, after: NodeState) -> Iterator[str]:
    if before.node is not after.node:
        yield f"{before.node} becomes {after.node}"
    if before.mode != after.mode and after.node is not Node.LINK:
        yield f"mode {before.mode:04o} -> {after.mode:04o}"
    if (before.uid, before.gid) != (after.uid, after.gid):
        yield f"owner {before.uid}:{before.gid} -> {after.uid}:{after.gid}"
    if before.xattrs != after.xattrs:
        names = sorted({name for name, _ in set(before.xattrs) ^ set(after.xattrs)})
        yield f"attributes {', '.join(names)}"
    is_file = before.node is after.node is Node.FILE and before.size == after.size
    if is_file and before.same_metadata(after) and before.mtime_ns != after.mtime_ns:
        yield "time"
