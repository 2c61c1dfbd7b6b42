"""A line of a log as a row of the timeline: plain text, short, cheap to make, whatever is in the line.

Rows are made from parsed JSON and not from contracts: they are made by the hundred while a user scrolls. What a
row says is shown as text by the page, never as markup.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from artoo.contracts import codec
from artoo.contracts.errors import MessageUnreadable
from artoo.contracts.shortened import CUT, shortened
from artoo.tasklog.event_text import Json, event_text, object_in
from artoo.tasklog.layout import GAP_KEY
from artoo.words.shown import printable

LONGEST = 160
"""Characters of a row's text; the whole of it is one click away."""

QUIET = frozenset(
    {"Observed", "MemoryRead", "MemoryWritten", "ToolStarted", "ExecutionResult", "Joined", "TaskOpened", "SubTask"}
)
"""Kinds that say what another line says better, or that only a replay needs."""

_PASSED = b'"verdict":"pass"'


@dataclass(frozen=True, slots=True)
class Row:
    """`n`: the line's number. `tone`: good, bad, warn, or empty. `at`: as in the log (UTC)."""

    n: int
    at: str
    role: str
    kind: str
    text: str
    tone: str = ""
    subtask: str = ""

    def plain(self) -> Json:
        """Return it as JSON."""
        return asdict(self)


def quiet(kind: str, line: bytes) -> bool:
    """Check whether a line may be folded away: records for replays, and passed criteria, never failures."""
    return kind in QUIET or (kind == "CriterionJudged" and _PASSED in line)


def row_of(number: int, line: bytes) -> Row:
    """Build the row of a line. Never raises: an unreadable line says so."""
    try:
        fields = codec.fields_of(line)
    except MessageUnreadable as error:
        return Row(number, "", "", "unreadable", one_line(str(error)), "bad")
    if lost := object_in(fields.get(GAP_KEY)):
        return Row(number, "", "", "gap", one_line(f"{lost.get('count')}: {lost.get('reason')}"), "bad")
    kind, payload = str(fields.get("kind", "")), object_in(fields.get("payload"))
    text, tone = event_text(kind, payload)
    return Row(
        n=number,
        at=str(fields.get("at", "")),
        role=str(fields.get("sender", "")),
        kind=kind,
        text=one_line(text),
        tone=tone,
        subtask=str(fields.get("subtask_id") or payload.get("subtask_id") or ""),
    )


def one_line(text: str) -> str:
    """Cut to a line of visible characters: an escape or a right-to-left mark shows as what it is."""
    more = CUT if len(text.rstrip()) > LONGEST * 2 else ""
    return shortened(" ".join(printable(text[: LONGEST * 2]).split()) + more, LONGEST)
