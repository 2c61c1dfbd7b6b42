"""The texts that tell a model about pending changes: they are prepared, and not done."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from artoo.contracts.request import Act, TaskSpec, Turn
from artoo.contracts.settling import ChangeClass
from artoo.contracts.shortened import listed, shortened

# Characters of an earlier request that are enough to know it by.
_REQUEST = 200
# Characters of the last result: "translate that" needs it whole.
_LAST = 2_000

_BECAME: Mapping[Act, str] = {
    "applied": "In the files now",
    "discarded": "What was prepared has been dropped",
    "expired": "What was prepared has been dropped, as nobody agreed in time",
    "undone": "Put back as it was before",
}
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
_NEW = "If only new files are made, they take effect without that: say that they are made."


def today_is(at: datetime) -> str:
    """Name the day where the user is, for prompts whose model can reckon with it."""
    return f"Today: {at.astimezone().date().isoformat()}"


def beforehand(unasked: Collection[ChangeClass]) -> str:
    """Say the same before anything was changed, of usual changes, for a call whose output is the answer."""
    told = prepared((ChangeClass.SILENT, ChangeClass.EDIT, ChangeClass.DELETION), unasked, begun="If")
    return f"{told} {_NEW}" if told and ChangeClass.SILENT in unasked else told


def prepared(classes: Collection[ChangeClass], unasked: Collection[ChangeClass], *, begun: str = "Because") -> str:
    """Say what is pending; empty where nothing is. `unasked`: what may take effect so after the task."""
    waiting = set(classes).difference(unasked)
    kinds = " or ".join(kind for one, kind in _KINDS.items() if one in waiting)
    told = f"{begun} something is {kinds}, nothing of it takes effect before the person agrees after the task: "
    return f"{told}say that it is prepared." if waiting else ""


def what_became(turn: Turn) -> str:
    """Say what was done with an earlier turn's changes since, what of them is pending for the user, and what only
    the person can do about that; empty: nothing is known.

    Without it an approval of what was prepared reads like a request to do it, and it is done a second time.
    """
    lines = [f"{_BECAME[act]}: {listed(paths)}." if paths else f"{_BECAME[act]}." for act, paths in turn.became]
    if any(act == "applied" for act, _ in turn.became):
        lines.append(f"Only the person can put that back as it was, in a terminal: artoo undo {turn.task_id}")
    if turn.waits:
        lines.append(
            f"What it changed is prepared and not in the files yet: {listed(turn.waits)}. It is not to be done "
            f"again. It needs the person's consent: only they can apply or discard task {turn.task_id}"
        )
    if turn.here:
        lines.append("The files and commands of this task have that change already.")
    return "\n".join(lines)


def earlier(spec: TaskSpec) -> str:
    """Tell a planner of the conversation: the last turn with its result, and what is pending of others."""
    before = (turn for turn in spec.waiting if spec.last is None or turn.task_id != spec.last.task_id)
    lines = [f"Person: {shortened(turn.input, _REQUEST)}\n{what_became(turn)}" for turn in before]
    if spec.last is not None:
        lines.append(turn_told(spec.last, _LAST))
    return "\n".join(lines)


def turn_told(turn: Turn, most: int) -> str:
    """Write one exchange, and what became of its changes. `most`: characters of the request and of the result."""
    said = (f"Person: {shortened(turn.input, most)}", f"Result: {shortened(turn.summary, most)}")
    return "\n".join(filter(None, (*said, what_became(turn))))
