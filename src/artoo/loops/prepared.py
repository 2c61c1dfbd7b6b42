"""What a model that speaks to the person is told of changes which wait: they are prepared, and not done."""

from __future__ import annotations

from collections.abc import Collection

from artoo.contracts.request import Turn
from artoo.contracts.settling import ApplyMode, ChangeClass
from artoo.contracts.shortened import listed, shortened

_REQUEST = 200
"""Characters of an earlier request that are enough to know it by."""

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


def still_waits(turn: Turn) -> str:
    """Of an earlier turn, what waits for the person, and what only the person can do about it; empty: nothing does.

    Without it a yes to what was prepared reads like a request to do it, and it is done a second time.
    """
    if not turn.waits:
        return ""
    return (
        f"What it changed is prepared and not in the files yet: {listed(turn.waits)}. It is not to be done again. "
        f"Only the person can let it take effect, by typing: artoo apply {turn.task_id}"
    )


def waiting_before(turns: Collection[Turn]) -> str:
    """The same of all earlier turns, each with its request."""
    lines = (f"Person: {shortened(turn.input, _REQUEST)}\n{told}" for turn in turns if (told := still_waits(turn)))
    return "\n".join(lines)
