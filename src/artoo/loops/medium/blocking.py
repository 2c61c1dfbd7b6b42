"""Select the tools and targets that a directive forbids in the next plan."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence

from artoo.contracts.execution import CallStatus, CriterionVerdict, SubTaskOutcome, ToolCall, identities_of
from artoo.contracts.failure import FailureClass
from artoo.ports.tools import ToolSpec

# Parts of the messages with which programs report transient errors on this system.
_PASSING = tuple(
    os.strerror(code).casefold()
    for code in (
        *(errno.EAGAIN, errno.ETIMEDOUT, errno.ECONNRESET, errno.ECONNREFUSED),
        *(errno.ENETUNREACH, errno.EHOSTUNREACH),
    )
)


def tools_to_block(
    outcomes: Iterable[SubTaskOutcome], specs: Sequence[ToolSpec], before: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the tools blocked `before`, and the tools that the failing verdicts name as the cause. If they name no
    tool, the tools of the calls that failed with their own error are blocked.

    A verdict that is `blameless` names no tool. A call does not count against its tool if it succeeded, timed out,
    was refused or interrupted, or missed a file. An honest `cannot` does not count either. The last tool that can
    read and the last that can write are never blocked, because a plan needs both.
    """
    return keeping_hands((*before, *_cited(outcomes)), specs)


def another_left(outcomes: Iterable[SubTaskOutcome], specs: Sequence[ToolSpec], before: Sequence[str]) -> bool:
    """Return whether another plan could give a different result. This is False if tools were blocked `before` and
    none of the tools that the verdicts name can be blocked in addition. It is True if the verdicts name no tool,
    because then nothing speaks against another plan.
    """
    cited = tuple(_cited(outcomes))
    return not before or not cited or keeping_hands((*before, *cited), specs) != tuple(before)


def keeping_hands(identities: Iterable[str], specs: Sequence[ToolSpec]) -> tuple[str, ...]:
    """Return the identities that can be blocked while at least one tool that reads and one that writes remain."""
    blocked: list[str] = []
    for identity in dict.fromkeys(identities):
        left = [spec for spec in specs if spec.name not in (*blocked, identity)]
        if any(spec.reads for spec in left) and any(spec.writes for spec in left):
            blocked.append(identity)
    return tuple(blocked)


def targets_to_block(
    outcomes: Sequence[SubTaskOutcome], before: Sequence[tuple[str, str]] = ()
) -> tuple[tuple[str, str], ...]:
    """Return the targets blocked `before`, and the (identity, target) pairs of the calls that failed permanently.

    Files that the task itself has made, transient errors and calls that did not run are never blocked.
    """
    made = {path for outcome in outcomes for call in outcome.tool_calls for path in call.changes}
    failed = [
        (identity, call.target)
        for outcome in outcomes
        if outcome.status == "failed" and not outcome.hopeless
        for call in outcome.tool_calls
        if _failed_for_good(call) and not any(path.endswith(call.target) for path in made)
        for identity in call.identity
    ]
    return tuple(dict.fromkeys((*before, *failed)))


def still_open(
    suggestions: Iterable[str], tools: Sequence[str], targets: Sequence[tuple[str, str]]
) -> tuple[str, ...]:
    """Return the suggestions that name no blocked tool and no blocked target. A suggestion has the form `tool`,
    `shell:find` or `tool on target`."""
    blocked_pairs = {f"{identity} on {target}" for identity, target in targets}

    def is_open(suggestion: str) -> bool:
        identity = suggestion.partition(" on ")[0]
        return not {identity, identity.partition(":")[0]} & set(tools) and suggestion not in blocked_pairs

    return tuple(filter(is_open, suggestions))


def _cited(outcomes: Iterable[SubTaskOutcome]) -> Iterable[str]:
    """Yield the tool identities that count against the approach. A tool that tried to read a missing file is not
    counted."""
    for outcome in outcomes:
        if outcome.status != "failed" or outcome.hopeless:
            continue
        failed = [each for each in outcome.criteria_verdicts if each.verdict == "fail"]
        ended = [each for each in outcome.tool_calls if each.status in (CallStatus.OK, CallStatus.ERROR)]
        ran = [each for each in ended if not (each.never_ran or each.absences)]
        missed = identities_of(each for each in ended if each.absences)
        lost = missed - identities_of(each for each in ran if each.went_wrong)
        blaming = [each for each in failed if not (each.blameless or _blames_a_place(each, lost))]
        if blaming or not failed:
            cited = [identity for verdict in blaming for identity in verdict.identities]
            own_errors = identities_of(each for each in ran if each.status is CallStatus.ERROR)
            innocent = identities_of(outcome.tool_calls) - identities_of(ran)
            yield from (identity for identity in cited or own_errors if identity not in innocent)


def _blames_a_place(verdict: CriterionVerdict, lost: set[str]) -> bool:
    """Return whether a verdict blames the environment, and the tools that it names had no other problem than a
    missing file.
    """
    of_world = verdict.failure_class is FailureClass.ENVIRONMENTAL
    return of_world and bool(verdict.identities) and lost.issuperset(verdict.identities)


def _failed_for_good(call: ToolCall) -> bool:
    if call.status not in (CallStatus.ERROR, CallStatus.REFUSED) or call.never_ran or not call.target:
        return False
    text = f"{call.error_output} {call.reason or ''}".casefold()
    return not any(words in text for words in _PASSING)
