"""From failed verdicts to one concrete correction: what was wrong, what to do, and what to leave alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from artoo.contracts.execution import (
    CallStatus,
    CorrectionSignal,
    CriterionVerdict,
    ExecutionResult,
    FailureClass,
    ToolCall,
)
from artoo.loops.fast.remedies import FirstLine, remedy

_EXCERPT = 300
_REASON = 160
_PRIOR_CALLS = 3
_SYNTAX = ("SyntaxError", "syntax error", "IndentationError", "unexpected EOF", "command not found")
_MISSING_MODULE = re.compile(r"No module named '([\w.]+)'")


def correction_for(
    result: ExecutionResult,
    failed: Sequence[CriterionVerdict],
    advice: str,
    *,
    mendable: bool = False,
    first_lines: Sequence[FirstLine] = (),
) -> CorrectionSignal:
    """The signal for these failed verdicts. `advice` is the judge's, when there was one.

    `mendable`: the tool was the right one and was used on the wrong thing. `first_lines` of files, as far as they
    are known: what a program stumbled over is often in one of them.
    """
    first = failed[0]
    logical = sum(verdict.failure_class is not FailureClass.ENVIRONMENTAL for verdict in failed)
    failure_class = FailureClass.LOGICAL if logical * 2 >= len(failed) else FailureClass.ENVIRONMENTAL
    last = result.tool_calls[-1] if result.tool_calls else None
    cure = remedy(last, first_lines) if last is not None else None
    return CorrectionSignal(
        subtask_id=result.subtask_id,
        attempt=result.attempt,
        what_was_wrong="; ".join(f"{verdict.criterion}: {verdict.evidence[:_REASON]}" for verdict in failed[:3]),
        what_to_do=_what_to_do(last, advice, cure, mendable=mendable),
        failed_criterion=first.criterion,
        failure_class=failure_class,
        # A program that is to be mended is not one to keep away from: a small model then changes what was right.
        prior_tool_calls=tuple(call.line()[:_REASON] for call in result.tool_calls[-_PRIOR_CALLS:] if cure is None),
        switch_from=None if mendable or cure is not None else _switch_from(result.tool_calls),
    )


def _switch_from(calls: Sequence[ToolCall]) -> str | None:
    """The tool to leave: one that ran well and gave the wrong thing, or that was used wrongly twice.

    One error of a script is worth mending in the same language; the same script again is refused anyway.
    """
    if not calls:
        return None
    last = calls[-1]
    same = [call for call in calls if call.tool == last.tool]
    mendable = last.status is CallStatus.ERROR and len(same) < 2
    return None if mendable and not any(word in last.error_output for word in _SYNTAX) else last.tool


def _what_to_do(last: ToolCall | None, advice: str, cure: str | None, *, mendable: bool) -> str:
    lines = [advice.strip()] if advice.strip() else []
    if last is None:
        lines.append("Use a tool: without tool output nothing about this computer can be claimed.")
    elif last.status is CallStatus.TIMEOUT:
        lines.append("It took too long: do less in one call.")
    elif cure is not None:
        lines.append(cure)
    elif last.never_ran:
        lines.append(f"The call was refused: {(last.reason or '').strip()[:_EXCERPT]}")
    elif last.status is not CallStatus.OK:
        lines.append(_after_error((last.error_output or last.reason or last.output).strip()))
    elif not mendable:
        lines.append("Use another way.")
    return "\n".join(lines)


def _after_error(problem: str) -> str:
    missing = _MISSING_MODULE.search(problem)
    if missing:
        return f"{missing[1]} is not installed here. Use only Python's standard library (csv, json, statistics)."
    return f"The call failed: {problem[-_EXCERPT:]}\nMend exactly that, and use only files that exist."
