"""What a model that speaks to the person is told of changes which wait: they are prepared, and not done."""

from __future__ import annotations

from collections.abc import Collection

from artoo.contracts.settling import ApplyMode, ChangeClass

_KINDS = {
    ChangeClass.SILENT: "created",
    ChangeClass.EDIT: "changed",
    ChangeClass.MODE: "given other rights",
    ChangeClass.LINK: "made to lead elsewhere",
    ChangeClass.ELSEWHERE: "changed outside the project",
    ChangeClass.SPECIAL: "made a special file",
    ChangeClass.HISTORY: "rewritten in a repository's history",
    ChangeClass.PERSISTENCE: "set up to run later by itself",
    ChangeClass.DELETION: "deleted",
}


def prepared(classes: Collection[ChangeClass], apply: ApplyMode) -> str:
    """A sentence about what waits; empty where nothing does. `apply`: what takes effect unasked after the task."""
    return _sentence("Because", classes, apply)


def beforehand(apply: ApplyMode) -> str:
    """The same before anything was changed, for a call that does so and is the answer: of what is usual."""
    return _sentence("If", (ChangeClass.SILENT, ChangeClass.EDIT, ChangeClass.DELETION), apply)


def _sentence(begun: str, classes: Collection[ChangeClass], apply: ApplyMode) -> str:
    waiting = set(classes) - apply.unasked
    if not waiting:
        return ""
    kinds = " or ".join(kind for one, kind in _KINDS.items() if one in waiting)
    return (
        f"{begun} something is {kinds}, nothing of it takes effect before the person agrees after the task: "
        "say that it is prepared."
    )
