"""One line of text for each kind of event, for `artoo log show` and the web UI's timeline.

The lines are made from parsed JSON instead of contracts, because the web UI needs hundreds of lines while a user
scrolls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from artoo.contracts.text import shortened

Json = dict[str, object]

# Maximum number of characters of a command. It leaves room for the status of the command in the same line.
LONGEST_CALL = 100


def event_text(kind: str, payload: Json) -> tuple[str, str]:
    """Return the text of an event, which may be empty, and its tone: good, bad, warn, or empty."""
    return _TEXTS.get(kind, _nothing)(payload)


def object_in(value: object) -> Json:
    """Return `value` if it is a JSON object, otherwise an empty one."""
    return cast(Json, value) if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    return [str(each) for each in cast("list[object]", value)] if isinstance(value, list) else []


def _objects(value: object) -> list[Json]:
    return [object_in(each) for each in cast("list[object]", value)] if isinstance(value, list) else []


def _number(value: object) -> float:
    """Return the value if it is a number, otherwise 0. It may be anything, because the lines are not validated."""
    try:
        return float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:  # The value is an integer of hundreds of digits.
        return 0.0


def _nothing(payload: Json) -> tuple[str, str]:
    for name in ("reason", "title", "summary", "intent", "text", "error"):
        if isinstance(payload.get(name), str) and payload[name]:
            return str(payload[name]), ""
    return "", ""


def _model(payload: Json) -> tuple[str, str]:
    usage, money, error = object_in(payload.get("usage")), payload.get("money"), payload.get("error")
    parts = [
        payload.get("contract"),
        f"{usage.get('prompt_tokens', 0)} + {usage.get('completion_tokens', 0)} tokens",
        f"{usage['cached_tokens']} cached" if usage.get("cached_tokens") else "",
        f"{_number(payload.get('duration_ms')) / 1000:.1f} s",
        f"paid {_number(money):.3g}" if money is not None else "",
        "repaired" if payload.get("repaired") else "",
        error,
    ]
    return " · ".join(str(part) for part in parts if part), "bad" if error else ""


def _tool(payload: Json) -> tuple[str, str]:
    call = object_in(payload.get("call"))
    done = shortened(str(call.get("ran") or call.get("input") or call.get("target")), LONGEST_CALL)
    status, code = call.get("status", "ok"), call.get("exit_code")
    ended = f"{status}" if code is None else f"{status}, exit {code}"
    return (
        f"{call.get('tool')}: {done} · {ended} · {call.get('duration_ms', 0)} ms",
        "" if status == "ok" else "bad",
    )


def _verdict(payload: Json) -> tuple[str, str]:
    verdict = object_in(payload.get("verdict"))
    how = str(verdict.get("verdict"))
    tone = {"pass": "good", "fail": "bad"}.get(how, "warn")
    # An open verdict is one that no check and no judge decided.
    by = None if how == "open" else verdict.get("decided_by")
    why = ": ".join(str(part) for part in (by, verdict.get("evidence")) if part)
    return f"{how}: {verdict.get('criterion')}" + (f" ({why})" if why else ""), tone


def _outcome(payload: Json) -> tuple[str, str]:
    matched = payload.get("status") == "matched"
    why = "" if matched else f": {payload.get('failure_reason') or ''}"
    return f"{payload.get('status')}{why} · {payload.get('intent')}", "good" if matched else "bad"


def _decided(payload: Json) -> tuple[str, str]:
    loss = object_in(payload.get("loss"))
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
    "MemoryRead": lambda payload: (
        str(payload.get("error") or f"{payload.get('space')} {payload.get('entity')}"),
        "",
    ),
    "MemoryWritten": lambda payload: (
        f"{_number(payload.get('sigma')):+g} {payload.get('space')} {payload.get('entity')}",
        "",
    ),
    "TaskResumed": lambda payload: (f"{len(_texts(payload.get('dropped')))} messages before it do not stand", ""),
    "Settled": lambda payload: (f"{payload.get('state')} {payload.get('reason') or ''}", ""),
    "FinalResult": _result,
}
