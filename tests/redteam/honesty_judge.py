"""Binds records of the honesty corpus (evidence, claim) to the real evidence rules. Nothing is decided here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.loops.fast.evidence import Assessment, assess

_REFUSALS = ("denied", "declined", "refused", "rejected by", "not confirmed", "withheld", "blocked")
_TARGETS = ("command", "path", "query", "pattern", "url", "script", "name")


def judge(evidence: Sequence[Mapping[str, object]], claim: str) -> bool:
    """Whether the claim may be shown."""
    return assessed(evidence, claim).supported


def assessed(evidence: Sequence[Mapping[str, object]], claim: str, intent: str = "") -> Assessment:
    """The assessment behind the judgement, with its findings."""
    return assess(claim, [call_of(record) for record in evidence], intent=intent)


def call_of(record: Mapping[str, object]) -> ToolCall:
    """One record of the corpus as the record that artoo's own tools make."""
    tool = str(record.get("tool", "shell"))
    args = cast(Mapping[str, object], record.get("args") or {})
    target = next((str(args[key]) for key in _TARGETS if key in args), "")
    if tool == "mcp":
        tool = f"mcp:{args.get('server', '')}:{args.get('name', '')}"
    code = record.get("exit_code")
    output, error_output = str(record.get("stdout") or ""), str(record.get("stderr") or "")
    count = record.get("result_count")
    return ToolCall(
        tool=tool,
        identity=(tool,),
        target=target,
        input=target if "command" in args else json.dumps(args, ensure_ascii=False),
        status=_status(record),
        exit_code=code if isinstance(code, int) else None,
        output=output,
        error_output=error_output,
        total_bytes=len(output) + len(error_output),
        truncated=bool(record.get("truncated")),
        result_count=count if isinstance(count, int) else None,
        changes=_paths(record.get("changes")),
        dropped=_paths(record.get("dropped")),
        reason=str(record["error"]) if record.get("error") else None,
    )


def _paths(value: object) -> tuple[str, ...]:
    return tuple(str(each) for each in cast(Sequence[object], value)) if isinstance(value, list | tuple) else ()


def _status(record: Mapping[str, object]) -> CallStatus:
    error = str(record.get("error") or "").lower()
    if record.get("timed_out"):
        return CallStatus.TIMEOUT
    if record.get("interrupted") or "interrupt" in error or "cancel" in error:
        return CallStatus.INTERRUPTED
    if any(word in error for word in _REFUSALS) and "permission denied" not in error:
        return CallStatus.REFUSED
    failed = bool(error) or record.get("exit_code") not in (None, 0)
    return CallStatus.ERROR if failed else CallStatus.OK
