"""Prompt texts about today's date, pending changes, and earlier turns of the conversation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from artoo.contracts.request import Act, TaskSpec, Turn
from artoo.contracts.settling import ChangeClass
from artoo.contracts.text import listed, shortened

# Number of characters by which a reader can recognise an earlier request.
_REQUEST = 200
# Number of characters of the last result that are shown. A request such as "translate that" needs all of it.
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
    """Return a line with today's date in the user's time zone, for prompts whose model can calculate with it."""
    return f"Today: {at.astimezone().date().isoformat()}"


def beforehand(unasked: Collection[ChangeClass]) -> str:
    """Describe the pending changes in advance, for a call whose output is the answer, so that the model cannot be
    told later."""
    told = prepared((ChangeClass.SILENT, ChangeClass.EDIT, ChangeClass.DELETION), unasked, begun="If")
    return f"{told} {_NEW}" if told and ChangeClass.SILENT in unasked else told


def prepared(classes: Collection[ChangeClass], unasked: Collection[ChangeClass], *, begun: str = "Because") -> str:
    """Describe the changes that need the user's approval; empty if there are none. `unasked`: classes of changes
    that are applied without approval."""
    waiting = set(classes).difference(unasked)
    kinds = " or ".join(kind for one, kind in _KINDS.items() if one in waiting)
    told = f"{begun} something is {kinds}, nothing of it takes effect before the person agrees after the task: "
    return f"{told}say that it is prepared." if waiting else ""


def what_became(turn: Turn) -> str:
    """Describe an earlier turn's changes: whether they were applied, which of them are pending, and what only the
    user can do about them. Return "" if nothing is known.

    Without this text, the user's approval of pending changes would look like a new request, and the changes would
    be made a second time.
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
    """Describe the conversation for the planner: the last turns, the last result, and the pending changes of other
    turns."""
    before = (turn for turn in spec.waiting if spec.last is None or turn.task_id != spec.last.task_id)
    lines = [f"Person: {shortened(turn.input, _REQUEST)}\n{what_became(turn)}" for turn in before]
    if spec.last is not None:
        lines.append(turn_told(spec.last, _LAST))
    return "\n".join(lines)


def turn_told(turn: Turn, most: int) -> str:
    """Write the request and the result of one turn, and the state of its changes. `most`: characters of the request
    and of the result."""
    said = (f"Person: {shortened(turn.input, most)}", f"Result: {shortened(turn.summary, most)}")
    return "\n".join(filter(None, (*said, what_became(turn))))
