"""A line of a log as a row of the timeline: plain text, short, cheap to make, whatever is in the line.

Rows are made from parsed JSON and not from contracts: they are made by the hundred while somebody scrolls. What a
row says is shown as text by the page, never as markup.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import cast

from artoo.contracts import codec
from artoo.contracts.changes import is_visible
from artoo.contracts.errors import MessageUnreadable
from artoo.tasklog.layout import GAP_KEY

LONGEST = 160
"""Characters of a row's text; the whole of it is one click away."""

Json = dict[str, object]

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
        """For JSON."""
        return asdict(self)


def quiet(kind: str, line: bytes) -> bool:
    """Whether a line may be folded away: records for replays, and criteria that passed. What failed never is."""
    return kind in QUIET or (kind == "CriterionJudged" and _PASSED in line)


def row_of(number: int, line: bytes) -> Row:
    """Never raises: a line that cannot be read says so."""
    try:
        fields = codec.fields_of(line)
    except MessageUnreadable as error:
        return Row(number, "", "", "unreadable", one_line(str(error)), "bad")
    gap = fields.get(GAP_KEY)
    if isinstance(gap, dict):
        lost = cast(Json, gap)
        return Row(number, "", "", "gap", one_line(f"{lost.get('count')}: {lost.get('reason')}"), "bad")
    kind, payload = str(fields.get("kind", "")), _object(fields.get("payload"))
    text, tone = _TEXTS.get(kind, _nothing)(payload)
    return Row(
        n=number,
        at=str(fields.get("at", "")),
        role=str(fields.get("sender", "")),
        kind=kind,
        text=one_line(text),
        tone=tone,
        subtask=str(fields.get("subtask_id") or payload.get("subtask_id") or ""),
    )


def one_line(text: str, longest: int = LONGEST) -> str:
    """Cut to a line of visible characters: an escape or a right-to-left mark shows as what it is."""
    cut = text[: longest * 2]
    shown = "".join(each if is_visible(each) else _instead(each) for each in cut).strip()
    return shown if len(shown) <= longest and len(cut) == len(text) else f"{shown[: longest - 1]}…"


def _instead(character: str) -> str:
    return " " if character in "\n\r\t" else f"\\u{{{ord(character):x}}}"


def _object(value: object) -> Json:
    return cast(Json, value) if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    return [str(each) for each in cast("list[object]", value)] if isinstance(value, list) else []


def _objects(value: object) -> list[Json]:
    return [_object(each) for each in cast("list[object]", value)] if isinstance(value, list) else []


def _number(value: object) -> float:
    """0 where a log has something else: rows are made of lines that no contract was held against."""
    try:
        return float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:  # an integer of hundreds of digits
        return 0.0


def _nothing(payload: Json) -> tuple[str, str]:
    for name in ("reason", "title", "summary", "intent", "text", "error"):
        if isinstance(payload.get(name), str) and payload[name]:
            return str(payload[name]), ""
    return "", ""


def _model(payload: Json) -> tuple[str, str]:
    usage = _object(payload.get("usage"))
    seconds = _number(payload.get("duration_ms")) / 1000
    tokens = f"{usage.get('prompt_tokens', 0)} + {usage.get('completion_tokens', 0)} tokens"
    error = payload.get("error")
    said = f"{payload.get('contract')} · {tokens} · {seconds:.1f} s" + (f" · {error}" if error else "")
    return said, "bad" if error else ""


def _tool(payload: Json) -> tuple[str, str]:
    call = _object(payload.get("call"))
    done = call.get("ran") or call.get("input") or call.get("target")
    status, code = call.get("status", "ok"), call.get("exit_code")
    ended = f"{status}" if code is None else f"{status}, exit {code}"
    return (
        f"{call.get('tool')}: {done} · {ended} · {call.get('duration_ms', 0)} ms",
        "" if status == "ok" else "bad",
    )


def _verdict(payload: Json) -> tuple[str, str]:
    verdict = _object(payload.get("verdict"))
    how = str(verdict.get("verdict"))
    tone = {"pass": "good", "fail": "bad"}.get(how, "warn")
    by = None if how == "open" else verdict.get("decided_by")  # nobody, which it says already
    why = ": ".join(str(part) for part in (by, verdict.get("evidence")) if part)
    return f"{how}: {verdict.get('criterion')}" + (f" ({why})" if why else ""), tone


def _outcome(payload: Json) -> tuple[str, str]:
    matched = payload.get("status") == "matched"
    why = "" if matched else f": {payload.get('failure_reason') or ''}"
    return f"{payload.get('status')}{why} · {payload.get('intent')}", "good" if matched else "bad"


def _decided(payload: Json) -> tuple[str, str]:
    loss = _object(payload.get("loss"))
    numbers = " ".join(f"{name} {_number(loss.get(key)):.2f}" for name, key in _TERMS)
    return " · ".join(filter(None, (str(payload.get("directive")), numbers, str(payload.get("reason") or "")))), ""


_TERMS = (("D", "D"), ("P", "P"), ("Ω", "Omega"), ("L", "L"))


def _directive(payload: Json) -> tuple[str, str]:
    blocked = ", ".join(_texts(payload.get("blocked_tools")))
    return f"{payload.get('directive')} · {payload.get('rationale')}" + (
        f" · not {blocked}" if blocked else ""
    ), "warn"


def _plan(payload: Json) -> tuple[str, str]:
    return str(payload.get("reply") or _intents(payload)), ""


def _manifest(payload: Json) -> tuple[str, str]:
    return _intents(payload), ""


def _intents(payload: Json) -> str:
    return " | ".join(str(each.get("intent")) for each in _objects(payload.get("subtasks")))


def _result(payload: Json) -> tuple[str, str]:
    directive = str(payload.get("directive"))
    return f"{directive}: {payload.get('summary')}", "bad" if directive == "abandon" else "good"


def _of(name: str, tone: str = "") -> Callable[[Json], tuple[str, str]]:
    return lambda payload: (str(payload.get(name) or ""), tone)


_TEXTS: dict[str, Callable[[Json], tuple[str, str]]] = {
    "UserRequest": _of("text"),
    "TaskSpec": _of("intent"),
    "Plan": _plan,
    "DispatchManifest": _manifest,
    "PlanRefused": lambda payload: ("; ".join(_texts(payload.get("reasons"))), "bad"),
    "SubTask": _of("intent"),
    "ModelCalled": _model,
    "ToolStarted": lambda payload: (f"{payload.get('tool')}: {payload.get('input')}", ""),
    "ToolCalled": _tool,
    "CriterionJudged": _verdict,
    "CorrectionSignal": _of("what_was_wrong", "warn"),
    "SubTaskOutcome": _outcome,
    "OutcomeSummary": _of("summary", "good"),
    "ReplanRequest": _of("gap_summary", "warn"),
    "Decided": _decided,
    "PlanDirective": _directive,
    "ConfirmationRequest": _of("title", "warn"),
    "ConfirmationAnswer": lambda payload: (f"{payload.get('consent')} · {payload.get('by')}", ""),
    "RoleFailure": lambda payload: (f"{payload.get('role')}: {payload.get('reason')}", "bad"),
    "RouteViolation": _of("reason", "bad"),
    "MessagesDropped": lambda payload: (f"{payload.get('subscriber')}: {payload.get('count')}", "bad"),
    "Observed": lambda payload: (f"{payload.get('source')}: {payload.get('question')}", ""),
    "NetworkUsed": lambda payload: (" ".join(str(value) for value in payload.values()), ""),
    "MemoryRead": lambda payload: (f"{payload.get('space')} {payload.get('entity')}", ""),
    "MemoryWritten": lambda payload: (f"{payload.get('space')} {payload.get('entity')}", ""),
    "Settled": lambda payload: (f"{payload.get('state')} {payload.get('reason') or ''}", ""),
    "FinalResult": _result,
}
