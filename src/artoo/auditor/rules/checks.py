"""Checks that can be made again from the stream alone: what they look at is in the messages."""

from __future__ import annotations

import json
from collections.abc import Sequence

from artoo.contracts.criteria import Check, OutputIsJson, OutputMatches, ToolSucceeded
from artoo.contracts.execution import CallStatus, ToolCall

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
