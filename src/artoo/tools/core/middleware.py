"""Middleware around every tool call, which may inspect, change, answer or refuse it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from artoo.contracts.execution import CallStatus
from artoo.tools.core.tool import Arguments, Outcome


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call, as middleware sees it: the name of the tool, the validated arguments, and the subtask that makes
    the call."""

    tool: str
    arguments: Arguments
    subtask_id: str = ""


Run = Callable[[ToolUse], Awaitable[Outcome]]
Middleware = Callable[[ToolUse, Run], Awaitable[Outcome]]
"""Receives a call and the function that runs it, and returns the outcome. An exception is the call's error."""


def refused(reason: str) -> Outcome:
    """Return the outcome of a call that middleware refuses. The model reads the reason."""
    return Outcome(status=CallStatus.REFUSED, reason=reason)


def around(middleware: Sequence[Middleware], run: Run) -> Run:
    """Return a function that runs a call through all middleware. The first middleware in the list is the
    outermost."""
    for each in reversed(middleware):
        run = _wrapped(each, run)
    return run


def _wrapped(middleware: Middleware, run: Run) -> Run:
    async def wrapped(use: ToolUse) -> Outcome:
        return await middleware(use, run)

    return wrapped
