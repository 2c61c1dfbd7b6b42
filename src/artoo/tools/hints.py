"""What to add to a failed command so that the next try is better: where the named files really are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Roots
from artoo.tools.nearby import explain_missing
from artoo.tools.paths import absolute
from artoo.tools.threads import in_thread
from artoo.tools.tool import Outcome

_MOST_HINTS = 2
_NOT_THERE = re.compile(r"no such file|not found|cannot (open|access|find|stat)|does not exist", re.IGNORECASE)


async def with_hints(outcome: Outcome, words: Iterable[str], roots: Roots) -> Outcome:
    """The outcome with a reason that explains those of `words` that it complains about and that are not there."""
    complaint = outcome.error_output
    if outcome.status is not CallStatus.ERROR or not complaint or outcome.exit_code in (0, None):
        return outcome
    lines = [line for line in complaint.splitlines() if _NOT_THERE.search(line)]
    accused = (word for word in words if any(word in line for line in lines))
    missing = [path for word in accused if (path := _missing(word, roots)) is not None]
    hints = [await in_thread(explain_missing, path, roots) for path in dict.fromkeys(missing[:_MOST_HINTS])]
    reason = "; ".join(filter(None, (outcome.reason, *hints)))
    return replace(outcome, reason=reason or last_line(complaint))


def last_line(text: str) -> str | None:
    """The last line that says something: where programs and tracebacks put what went wrong."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), None)


def _missing(word: str, roots: Roots) -> Path | None:
    try:
        path = absolute(word, roots)
    except ToolError:
        return None
    try:
        return None if path.exists() else path
    except OSError:
        return None
