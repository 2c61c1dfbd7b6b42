"""Build the rows of the web timeline from log lines, and choose the quiet kinds that can be folded.

Each line becomes a row, even if it is damaged.

Rows are built from parsed JSON, without decoding to contracts, because hundreds of rows are built while a user
scrolls. The page shows the text of a row as text, never as markup.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from artoo.contracts import codec
from artoo.contracts.errors import MessageUnreadable
from artoo.contracts.text import CUT, shortened
from artoo.tasklog.event_text import Json, event_text, object_in
from artoo.tasklog.layout import GAP_KEY
from artoo.web.names import named
from artoo.words.catalogue import Catalogue
from artoo.words.names import role_name
from artoo.words.shown import printable

LONGEST = 160
"""The most characters of a row's text. A click on the row shows the whole text."""

QUIET = frozenset(
    {"Observed", "MemoryRead", "MemoryWritten", "ToolStarted", "ExecutionResult", "Joined", "TaskOpened", "SubTask"}
)
"""Kinds that repeat the content of other lines, or that only a replay needs."""

_PASSED = b'"verdict":"pass"'


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the timeline. `n`: the line number. `tone`: good, bad, warn or empty. `at`: the time, in UTC."""

    n: int
    at: str
    role: str
    kind: str
    text: str
    tone: str = ""
    subtask: str = ""

    def plain(self, words: Catalogue) -> Json:
        """Return the row as a JSON object, with the names of role and kind in the language of the page."""
        role, kind = role_name(self.role, words) if self.role else "", words(named("kind", self.kind))
        return {**asdict(self), "role": role, "kind": kind}


def quiet(kind: str, line: bytes) -> bool:
    """Check whether the short view may fold a line, that is, a record for replays or a passed criterion."""
    return kind in QUIET or (kind == "CriterionJudged" and _PASSED in line)


def row_of(number: int, line: bytes) -> Row:
    """Build the row of a line. Never raises, because an unreadable line becomes a row with the error."""
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
    """Shorten a text to one line of visible characters. For example, a right-to-left mark is shown as an escape."""
    more = CUT if len(text.rstrip()) > LONGEST * 2 else ""
    return shortened(" ".join(printable(text[: LONGEST * 2]).split()) + more, LONGEST)
