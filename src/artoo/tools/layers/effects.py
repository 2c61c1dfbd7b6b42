"""From what a submission changed to what that does to the real files as they are now.

| the real path now | submission | becomes |
|---|---|---|
| as it was copied | anything | an effect |
| as the submission wants it | the same | nothing to do: a merge may be repeated after a crash |
| anything else | anything | a conflict: the user's version stays, and nothing is merged |
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from artoo.contracts.changes import Conflict, Node, printable_path
from artoo.tools.layers.difference import Difference, is_note
from artoo.tools.layers.layer import TREES, WORKSPACE
from artoo.world.converge import now_at
from artoo.world.files import parent_of
from artoo.world.nodes import NodeState, digest_file
from artoo.world.scan import Effect
from artoo.world.stage import Layer as Upper


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a merge would do, and what stands in its way."""

    effects: tuple[Effect, ...]
    conflicts: tuple[Conflict, ...]


def outlook(found: Sequence[Difference], originals: Mapping[str, Path], frozen: Path) -> Outlook:
    """Compares a submission with the real files. `frozen` holds its new contents. Raises OSError."""
    uppers = {tree: Upper(originals[tree], frozen / tree, frozen / tree) for tree in TREES}
    effects: list[Effect] = []
    conflicts: list[Conflict] = []
    made = {(one.tree, one.path) for one in found if one.after is not None and one.after.is_directory}
    for one in found:
        upper = uppers[one.tree]
        now = now_at(printable_path(os.fsencode(upper.root)), one.path)
        if _is_done(one, upper, now):
            continue
        reason = _conflict(one, upper, now) or _homeless(one, upper, made)
        if reason is not None:
            path = os.fsencode(upper.root) + b"/" + one.relative
            conflicts.append(Conflict(path=printable_path(path), reason=reason))
        else:
            effects.append(_effect(one, upper, now))
    return Outlook(tuple(sorted(effects, key=lambda effect: effect.path)), tuple(conflicts))


def _is_done(one: Difference, upper: Upper, now: NodeState | None) -> bool:
    if now is None or one.after is None:
        return now is None and one.after is None
    if now.node is not one.after.node:
        return False
    if now.is_directory and one.base is None:  # somebody made it too: what counts is what goes into it
        return True
    return _same_mode(now.mode, one.after) and _content(upper, one.path, now) == one.content


def _conflict(one: Difference, upper: Upper, now: NodeState | None) -> str | None:
    """Why the user's version stays. What was in the workspace already is overwritten only with consent, later."""
    base = one.base
    if is_note(one):
        return None
    if base is None:
        return None if now is None or one.tree == WORKSPACE else "it appeared since the task began"
    if not base.copied:
        return "it was not part of the task's copy"
    if now is None:
        return "it was removed since the task began"
    changed = now.node is not base.node or not _same_mode(base.mode, now)
    if changed or _content(upper, one.path, now) != base.content:
        return "it was changed since the task began"
    return None


def _same_mode(mode: int, state: NodeState) -> bool:
    return state.node is Node.LINK or state.mode == mode


def _homeless(one: Difference, upper: Upper, made: Iterable[tuple[str, str]]) -> str | None:
    """A new file needs a directory that is there, or that comes with it."""
    parent = one.path.rpartition("/")[0]
    if one.after is None or (one.tree, parent) in made:
        return None
    above = now_at(printable_path(os.fsencode(upper.root)), parent)
    return None if above is not None and above.is_directory else "the directory that should hold it is gone"


def _content(upper: Upper, path: str, now: NodeState) -> str:
    if now.node is Node.LINK:
        return printable_path(now.target)
    if now.node is not Node.FILE:
        return ""
    try:
        with parent_of(printable_path(os.fsencode(upper.root)), path) as (directory, name):
            return digest_file(directory, name)
    except OSError:  # not readable: then it cannot be shown to be the same
        return "unreadable"


def _effect(one: Difference, upper: Upper, now: NodeState | None) -> Effect:
    after = one.after
    digest = one.content if after is not None and after.node is Node.FILE else None
    if now is not None and after is not None and now.node is after.node:
        if now.is_directory or _content(upper, one.path, now) == one.content:
            return Effect(upper, one.relative, now, replace(now, mode=after.mode), in_place=True, digest=digest)
        after = replace(after, uid=now.uid, gid=now.gid, xattrs=now.xattrs)
        return Effect(upper, one.relative, now, after, appended=_grown(one, upper, now), digest=digest)
    return Effect(upper, one.relative, now, after, digest=digest)


def _grown(one: Difference, upper: Upper, now: NodeState) -> bool:
    """Whether the old content is the start of the new."""
    assert one.after is not None
    if now.node is not Node.FILE or one.after.size <= now.size:
        return False
    with parent_of(printable_path(os.fsencode(upper.upper)), one.path) as (directory, name):
        return digest_file(directory, name, now.size) == _content(upper, one.path, now)
