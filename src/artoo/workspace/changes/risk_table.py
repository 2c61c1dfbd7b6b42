"""The table of SPEC section 8.3: what a change means for the user, and why it needs approval. A pure function.

| change | class |
|---|---|
| new ordinary file or directory in project or output folder (`silent_rule`) | silent |
| ordinary file of project or output folder that is overwritten, moved to a new place, or gets new times | edit |
| anything that is deleted, or replaced by another kind of thing | deletion |
| mode, owner, attributes, execute bit, second hard link; times elsewhere | mode |
| any link | link |
| anything new or overwritten outside project and output folder | elsewhere |
| hidden names, start-up files, names that tools start, the home's hidden part, artoo's own files | persistence |
| what git could not give back (`workspace/git`) | history |
| pipes, sockets, devices; programs that gain their owner's rights | special |
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from artoo.contracts.changes import Change, ChangeKind, PathClass, Trait
from artoo.contracts.settling import ChangeClass, ClassifiedChange
from artoo.sandbox.reading.path_set import upwards
from artoo.workspace.changes.effect import Effect, Verdict

Meaning = tuple[ChangeClass, str]

BOUNDS = frozenset({PathClass.PROJECT, PathClass.WORKSPACE})
_SENSITIVE = {
    PathClass.ARTOO: "artoo's own files",
    PathClass.SECRET: "the closed part of the home",
    PathClass.PERSISTENCE: "runs or configures programs later",
}
_MOVED = "is moved to"
_ELSEWHERE = "outside project and workspace"


def classified(
    change: Change,
    *,
    within: bool,
    unusual: Verdict | None = None,
    moved_to: str | None = None,
    says: Verdict | None = None,
) -> ClassifiedChange:
    """Return the change with its class. `within`: it lies in project or output folder, whatever its path class.

    `unusual`: why it is no ordinary file (`silent_rule`). `moved_to`: where its old content is in the same change
    set. `says`: what git's specialist says of it.
    """
    if says is not None and says.change_class is ChangeClass.SILENT and not within:
        says = None
    meaning, reason = _meaning(change, unusual, moved_to, says)
    return ClassifiedChange(
        path=change.path,
        change_class=meaning,
        kind=change.kind,
        reason=reason,
        moved_to=moved_to if reason == _MOVED else None,
        detail=change.detail,
        rewrites=says.rewrites if says is not None and says.change_class is meaning else None,
        size_before=change.size_before,
        size_after=change.size_after,
    )


def _meaning(change: Change, unusual: Verdict | None, moved_to: str | None, says: Verdict | None) -> Meaning:
    if change.path_class is PathClass.ARTOO:
        return ChangeClass.PERSISTENCE, _SENSITIVE[PathClass.ARTOO]
    if change.has(Trait.PRIVILEGED):
        return ChangeClass.SPECIAL, "gives a program the rights of its owner"
    if change.kind is ChangeKind.SPECIAL:
        return ChangeClass.SPECIAL, "a special file (pipe, socket or device)"
    if says is not None:
        return says.change_class, says.reason
    if change.sensitive:
        return ChangeClass.PERSISTENCE, _SENSITIVE[change.path_class]
    meaning = _by_kind(change, moved_to, outside=change.path_class not in BOUNDS)
    if unusual is not None and unusual.change_class.danger < meaning[0].danger:
        return unusual.change_class, _MOVED if meaning[1] == _MOVED else unusual.reason
    return meaning


def _by_kind(change: Change, moved_to: str | None, *, outside: bool) -> Meaning:
    """Classify a change as if its file were ordinary."""
    match change.kind:
        case ChangeKind.DELETED if moved_to is not None and not outside:
            return ChangeClass.EDIT, _MOVED
        case ChangeKind.DELETED:
            return ChangeClass.DELETION, "is deleted"
        case ChangeKind.METADATA:
            return _metadata(change, outside=outside)
        case ChangeKind.LINK:
            return ChangeClass.LINK, _ELSEWHERE if outside else _link(change)
        case _ if outside:
            return ChangeClass.ELSEWHERE, _ELSEWHERE
        case ChangeKind.CREATED:
            return ChangeClass.SILENT, ""
        case _:
            return _overwritten(change)


def _link(change: Change) -> str:
    if change.has(Trait.POINTS_OUTSIDE):
        return "a link out of project and workspace"
    return "a new link" if change.before is None else "what is there now is replaced by a link"


def _metadata(change: Change, *, outside: bool) -> Meaning:
    """Mode, owner and times belong to all names of a file, and one of them may lie elsewhere."""
    if not change.has(Trait.TIMES_ONLY):
        return ChangeClass.MODE, "mode, owner or attributes change"
    if change.has(Trait.HARD_LINKED):
        return ChangeClass.MODE, "times change under all its hard links"
    return (
        (ChangeClass.MODE, f"times change, {_ELSEWHERE}")
        if outside
        else (ChangeClass.EDIT, "only its time changes")
    )


def _overwritten(change: Change) -> Meaning:
    if change.node is not change.before:
        return ChangeClass.DELETION, f"the {change.before} is replaced by a {change.node}"
    if change.has(Trait.WIDENED):
        return ChangeClass.MODE, "what is there now is overwritten, and its mode or owner changes"
    return ChangeClass.EDIT, "what is there now is overwritten"


def moves(effects: Sequence[Effect]) -> dict[str, str]:
    """Return where the contents of deleted files and directories are now, by printable path.

    Only a new path counts: where something was overwritten, a file is lost. A directory is moved when everything in
    it is, and there was something in it. An empty file is moved only to one of the same name, because it equals
    every empty file. Of equal files each goes to a path of its own while there are any.
    """
    gone = [effect for effect in effects if effect.after is None]
    if not gone:
        return {}
    arrived: dict[tuple[str, str], list[str]] = {}
    for effect in effects:
        if effect.before is None and effect.digest is not None:
            arrived.setdefault((effect.digest, os.path.basename(effect.shown)), []).append(effect.shown)
            arrived.setdefault((effect.digest, ""), []).append(effect.shown)
    found: dict[str, str] = {}
    for effect in gone:
        if effect.before_digest is None or effect.before is None:
            continue
        same_name = arrived.get((effect.before_digest, os.path.basename(effect.shown)))
        targets = same_name or (arrived.get((effect.before_digest, "")) if effect.before.size else None)
        if targets:
            found[effect.shown] = targets.pop(0) if len(targets) > 1 else targets[0]
    return found | _moved_directories(gone, found)


def _moved_directories(gone: Sequence[Effect], moved: Mapping[str, str]) -> dict[str, str]:
    emptied: dict[str, str] = {}
    lossy: set[str] = set()
    for file in (one for one in gone if one.before is not None and not one.before.is_directory):
        target = moved.get(file.shown)
        for above in upwards(os.path.dirname(file.shown)):
            if target is None:
                lossy.add(above)
            else:
                emptied.setdefault(above, os.path.dirname(target))
    directories = (one.shown for one in gone if one.before is not None and one.before.is_directory)
    return {path: emptied[path] for path in directories if path in emptied and path not in lossy}
