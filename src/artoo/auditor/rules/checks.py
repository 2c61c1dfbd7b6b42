"""Checks that can be made again from the stream alone: what they look at is in the messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from artoo.contracts.criteria import Check, OutputIsJson, OutputMatches, ToolSucceeded
from artoo.contracts.execution import CallStatus, CriterionVerdict, DecidedBy, ToolCall

_PASS = re.compile(r"\"verdict\"\s*:\s*\"pass\"")
_SECONDS = 0.2
_LONGEST = 2_000


def recheck(check: Check, output: str, calls: Sequence[ToolCall]) -> bool | None:
    """What the check says of this output and these calls; None when that cannot be told from here."""
    match check:
        case OutputMatches():
            return _matches(check.regex, output)
        case OutputIsJson() if check.json_schema is None:
            return _is_json(output)
        case ToolSucceeded():
            return _succeeded(check.tool, calls)
        case _:
            return None


def passes_said(calls: Iterable[tuple[str, str]]) -> int:
    """How many criteria a model's answers (each with what it was shown) pass."""
    return sum(len(_PASS.findall(answer)) for answer, _ in calls)


def passed_by_model(verdict: CriterionVerdict) -> bool:
    """Whether nothing but a model's word stands behind a pass."""
    return verdict.decided_by is DecidedBy.JUDGEMENT and verdict.verdict == "pass"


def _matches(pattern: str, text: str) -> bool | None:
    if len(pattern) > _LONGEST:
        return None
    import regex

    try:
        return regex.search(pattern, text, regex.MULTILINE, timeout=_SECONDS) is not None
    except (regex.error, TimeoutError, RecursionError, MemoryError, OverflowError):
        return None


def _is_json(output: str) -> bool | None:
    try:
        json.loads(output.strip())
    except ValueError:
        return False
    except RecursionError:
        return None
    # NaN and Infinity are read here and are not JSON.
    return None if "NaN" in output or "Infinity" in output else True


def _succeeded(tool: str | None, calls: Sequence[ToolCall]) -> bool:
    named = [call for call in calls if tool is None or call.tool == tool or tool in call.identity]
    if not named:
        return False
    last = named[-1]
    return last.status is CallStatus.OK and last.exit_code in (None, 0) and not last.dropped
