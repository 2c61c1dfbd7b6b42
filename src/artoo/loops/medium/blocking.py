"""What a directive forbids: identities of a wrong approach, targets that the world would not give."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence

from artoo.contracts.execution import CallStatus, CriterionVerdict, SubTaskOutcome, ToolCall, identities_of
from artoo.contracts.failure import FailureClass
from artoo.ports.tools import ToolSpec

_TRANSIENT = (CallStatus.TIMEOUT, CallStatus.INTERRUPTED, CallStatus.RUNNING)
_PASSING = tuple(
    os.strerror(code).casefold()
    for code in (
        *(errno.EAGAIN, errno.ETIMEDOUT, errno.ECONNRESET, errno.ECONNREFUSED),
        *(errno.ENETUNREACH, errno.EHOSTUNREACH),
    )
)
"""How this system names the errors that pass: its own fixed texts, as programs print them."""


def tools_to_block(
    outcomes: Iterable[SubTaskOutcome], specs: Sequence[ToolSpec], before: Sequence[str] = ()
) -> tuple[str, ...]:
    """What was blocked `before`, and the identities that the failing verdicts cite (all of a subtask's when none is
    cited).

    A verdict that is `blameless` cites nobody, and what was only turned away, or missed a file, has not failed.
    Never the last tool that can read, nor the last that can write: a plan needs hands.
    """
    return keeping_hands((*before, *_cited(outcomes)), specs)


def another_left(outcomes: Iterable[SubTaskOutcome], specs: Sequence[ToolSpec], before: Sequence[str]) -> bool:
    """Whether another plan could do otherwise than these outcomes: False where something was blocked `before`, and
    of what they cite nothing can be blocked any more. Where they cite nothing, nothing speaks against another plan.
    """
    cited = tuple(_cited(outcomes))
    return not before or not cited or keeping_hands((*before, *cited), specs) != tuple(before)


def keeping_hands(identities: Iterable[str], specs: Sequence[ToolSpec]) -> tuple[str, ...]:
    """Those identities, in order, that can be taken away while something is left that reads, and that writes."""
    blocked: list[str] = []
    for identity in dict.fromkeys(identities):
        left = [spec for spec in specs if spec.name not in (*blocked, identity)]
        if any(spec.reads for spec in left) and any(spec.writes for spec in left):
            blocked.append(identity)
    return tuple(blocked)


def targets_to_block(
    outcomes: Sequence[SubTaskOutcome], before: Sequence[tuple[str, str]] = ()
) -> tuple[tuple[str, str], ...]:
    """What was blocked `before`, and (identity, target) of calls that failed for good.

    Never what the task itself has made by now, never a passing fault, and never what did not run at all.
    """
    made = {path for outcome in outcomes for call in outcome.tool_calls for path in call.changes}
    failed = [
        (identity, call.target)
        for outcome in outcomes
        if outcome.status == "failed"
        for call in outcome.tool_calls
        if _failed_for_good(call) and not any(path.endswith(call.target) for path in made)
        for identity in call.identity
    ]
    return tuple(dict.fromkeys((*before, *failed)))


def still_open(
    suggestions: Iterable[str], tools: Sequence[str], targets: Sequence[tuple[str, str]]
) -> tuple[str, ...]:
    """Suggestions (`tool`, `shell:find`, `tool on target`) that name nothing blocked."""
    blocked_pairs = {f"{identity} on {target}" for identity, target in targets}

    def is_open(suggestion: str) -> bool:
        identity = suggestion.partition(" on ")[0]
        return not {identity, identity.partition(":")[0]} & set(tools) and suggestion not in blocked_pairs

    return tuple(filter(is_open, suggestions))


def _cited(outcomes: Iterable[SubTaskOutcome]) -> Iterable[str]:
    """What speaks against an approach. That a file was not there says nothing of the tool that looked for it."""
    for outcome in outcomes:
        failed = [each for each in outcome.criteria_verdicts if each.verdict == "fail"]
        ran = [call for call in outcome.tool_calls if not (call.never_ran or call.absences)]
        used, missed = identities_of(ran), identities_of(call for call in outcome.tool_calls if call.absences)
        lost = missed - identities_of(call for call in ran if call.went_wrong)
        blaming = [each for each in failed if not (each.blameless or _blames_a_place(each, lost))]
        if outcome.status == "failed" and (blaming or not failed):
            innocent = identities_of(outcome.tool_calls) - used
            cited = [identity for verdict in blaming for identity in verdict.identities]
            yield from (identity for identity in cited or used if identity not in innocent)


def _blames_a_place(verdict: CriterionVerdict, lost: set[str]) -> bool:
    """Whether it blames the world, and those whom it cites met nothing worse there than that a file was missing."""
    of_world = verdict.failure_class is FailureClass.ENVIRONMENTAL
    return of_world and bool(verdict.identities) and lost.issuperset(verdict.identities)


def _failed_for_good(call: ToolCall) -> bool:
    if call.status is CallStatus.OK or call.status in _TRANSIENT or call.never_ran or not call.target:
        return False
    text = f"{call.error_output} {call.reason or ''}".casefold()
    return not any(words in text for words in _PASSING)
