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

from artoo.contracts.changes import Change, ChangeKind, PathClass, Trait
from artoo.contracts.settling import ChangeClass, ClassifiedChange
from artoo.workspace.changes.verdict import Verdict

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
    if change.path_class not in BOUNDS:
        return _outside(change)
    meaning = _within(change, moved_to)
    if unusual is not None and unusual.change_class.danger < meaning[0].danger:
        return unusual.change_class, _MOVED if meaning[1] == _MOVED else unusual.reason
    return meaning


def _within(change: Change, moved_to: str | None) -> Meaning:
    """Classify a change of project or output folder, as if its file were ordinary."""
    match change.kind:
        case ChangeKind.DELETED if moved_to is not None:
            return ChangeClass.EDIT, _MOVED
        case ChangeKind.DELETED:
            return ChangeClass.DELETION, "is deleted"
        case ChangeKind.CREATED:
            return ChangeClass.SILENT, ""
        case ChangeKind.LINK if change.has(Trait.POINTS_OUTSIDE):
            return ChangeClass.LINK, "a link out of project and workspace"
        case ChangeKind.LINK if change.before is None:
            return ChangeClass.LINK, "a new link"
        case ChangeKind.LINK:
            return ChangeClass.LINK, "what is there now is replaced by a link"
        case ChangeKind.METADATA:
            return _metadata(change, ChangeClass.EDIT, "only its time changes")
        case _:
            return _overwritten(change)


def _outside(change: Change) -> Meaning:
    match change.kind:
        case ChangeKind.DELETED:
            return ChangeClass.DELETION, "is deleted"
        case ChangeKind.METADATA:
            return _metadata(change, ChangeClass.MODE, f"times change, {_ELSEWHERE}")
        case ChangeKind.LINK:
            return ChangeClass.LINK, _ELSEWHERE
        case _:
            return ChangeClass.ELSEWHERE, _ELSEWHERE


def _metadata(change: Change, times: ChangeClass, reason: str) -> Meaning:
    """Mode, owner and times belong to all names of a file, and one of them may lie elsewhere."""
    if not change.has(Trait.TIMES_ONLY):
        return ChangeClass.MODE, "mode, owner or attributes change"
    if change.has(Trait.HARD_LINKED):
        return ChangeClass.MODE, "times change under all its hard links"
    return times, reason


def _overwritten(change: Change) -> Meaning:
    if change.node is not change.before:
        return ChangeClass.DELETION, f"the {change.before} is replaced by a {change.node}"
    if change.has(Trait.WIDENED):
        return ChangeClass.MODE, "what is there now is overwritten, and its mode or owner changes"
    return ChangeClass.EDIT, "what is there now is overwritten"
