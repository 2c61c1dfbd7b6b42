"""The table of SPEC section 8: what a change means for the person, and why it needs consent. A pure function.

| change | class |
|---|---|
| new ordinary file, new link inside, times, all in project or workspace; cache made again | silent |
| overwritten or moved ordinary file of project or workspace | edit |
| anything that is gone, or replaced by another kind of thing | deletion |
| mode, owner, attributes; times elsewhere, and among hard links; an edit that lets somebody do more | mode |
| a link that leads out, or stands where something else was | link |
| anything new or overwritten outside project and workspace | elsewhere |
| start-up files, hooks, configuration of editors and agents, the closed home, artoo's own files | persistence |
| what git could not give back (`git_history`) | history |
| pipes, sockets, devices; programs that gain their owner's rights | special |
"""

from __future__ import annotations

from artoo.contracts.changes import Change, ChangeKind, PathClass, Trait
from artoo.contracts.settling import ChangeClass, ClassifiedChange
from artoo.world.verdict import Verdict

Meaning = tuple[ChangeClass, str]

BOUNDS = frozenset({PathClass.PROJECT, PathClass.WORKSPACE})
_SILENT: Meaning = (ChangeClass.SILENT, "")
_SENSITIVE = {
    PathClass.ARTOO: "artoo's own files",
    PathClass.SECRET: "the closed part of the home",
    PathClass.PERSISTENCE: "runs or configures programs later",
}
_MOVED = "is moved to"
_ELSEWHERE = "outside project and workspace"


def classified(
    change: Change, *, within: bool, moved_to: str | None = None, says: Verdict | None = None
) -> ClassifiedChange:
    """The change with its class. `within`: it lies in project or workspace, whatever its class of path.

    `moved_to`: where its old content stands in the same difference. `says`: what somebody says who knows such files
    (`git_history`, `git_configured`, `caches`).
    """
    if says is not None and says.change_class is ChangeClass.SILENT and not within:
        says = None
    meaning, reason = _meaning(change, moved_to, says)
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


def _meaning(change: Change, moved_to: str | None, says: Verdict | None) -> Meaning:
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
    return _within(change, moved_to) if change.path_class in BOUNDS else _outside(change)


def _within(change: Change, moved_to: str | None) -> Meaning:
    """Ordinary files of project and workspace."""
    match change.kind:
        case ChangeKind.DELETED if moved_to is not None:
            return ChangeClass.EDIT, _MOVED
        case ChangeKind.DELETED:
            return ChangeClass.DELETION, "is deleted"
        case ChangeKind.CREATED:
            return _SILENT
        case ChangeKind.LINK if change.has(Trait.POINTS_OUTSIDE):
            return ChangeClass.LINK, "a link out of project and workspace"
        case ChangeKind.LINK if change.before is None:
            return _SILENT
        case ChangeKind.LINK:
            return ChangeClass.LINK, "what is there now is replaced by a link"
        case ChangeKind.METADATA:
            return _metadata(change)
        case _:
            return _overwritten(change)


def _outside(change: Change) -> Meaning:
    match change.kind:
        case ChangeKind.DELETED:
            return ChangeClass.DELETION, "is deleted"
        case ChangeKind.METADATA if change.has(Trait.TIMES_ONLY):
            return ChangeClass.MODE, f"times change, {_ELSEWHERE}"
        case ChangeKind.METADATA:
            return _metadata(change)
        case ChangeKind.LINK:
            return ChangeClass.LINK, _ELSEWHERE
        case _:
            return ChangeClass.ELSEWHERE, _ELSEWHERE


def _metadata(change: Change) -> Meaning:
    """What is no content belongs to all names of a file, and one of them may lie elsewhere."""
    if not change.has(Trait.TIMES_ONLY):
        return ChangeClass.MODE, "mode, owner or attributes change"
    if change.has(Trait.HARD_LINKED):
        return ChangeClass.MODE, "times change under all its hard links"
    return _SILENT


def _overwritten(change: Change) -> Meaning:
    if change.node is not change.before:
        return ChangeClass.DELETION, f"the {change.before} is replaced by a {change.node}"
    if change.has(Trait.WIDENED):
        return ChangeClass.MODE, "what is there now is overwritten, and its mode or owner changes"
    return ChangeClass.EDIT, "what is there now is overwritten"
