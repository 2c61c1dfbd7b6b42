"""What a directive forbids: identities of a wrong approach, targets that the world would not give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from artoo.contracts.execution import CallStatus, SubTaskOutcome, ToolCall
from artoo.ports.tools import ToolSpec

_TRANSIENT = (CallStatus.TIMEOUT, CallStatus.INTERRUPTED)
_TRANSIENT_WORDS = (
    "temporarily",
    "timed out",
    "connection reset",
    "network is unreachable",
    "try again",
    "429",
    "503",
)


def tools_to_block(outcomes: Iterable[SubTaskOutcome], specs: Sequence[ToolSpec]) -> tuple[str, ...]:
    """Identities that the failing verdicts cite (all of a subtask's when none is cited).

    A verdict that is `blameless` cites nobody, and what was only ever turned away has not failed. Never the last
    tool that can read, nor the last that can write: a plan needs hands.
    """
    return keeping_hands(_cited(outcomes), specs)


def keeping_hands(identities: Iterable[str], specs: Sequence[ToolSpec]) -> tuple[str, ...]:
    """Those identities, in order, that can be taken away while something is left that reads, and that writes."""
    blocked: list[str] = []
    for identity in dict.fromkeys(identities):
        left = [spec for spec in specs if spec.name not in (*blocked, identity)]
        if any(spec.reads for spec in left) and any(spec.writes for spec in left):
            blocked.append(identity)
    return tuple(blocked)


def targets_to_block(outcomes: Iterable[SubTaskOutcome], own_outputs: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """(identity, target) of calls that failed for good, or that ran, were not accepted, and were made once more.

    Never the request's own output, never a passing fault, and never what did not run at all.
    """
    pairs = [
        (identity, call.target)
        for outcome in outcomes
        if outcome.status == "failed"
        for call in outcome.tool_calls
        if _failed_for_good(call) or _is_stuck(call, outcome)
        if not any(call.target.endswith(path) for path in own_outputs)
        for identity in call.identity
    ]
    return tuple(dict.fromkeys(pairs))


def _cited(outcomes: Iterable[SubTaskOutcome]) -> Iterable[str]:
    for outcome in outcomes:
        if outcome.status != "failed":
            continue
        if _only_unconfirmed(outcome):
            continue
        blaming = [each for each in outcome.criteria_verdicts if each.verdict == "fail" and not each.blameless]
        ran = dict.fromkeys(each for call in outcome.tool_calls if not call.never_ran for each in call.identity)
        turned_away = {each for call in outcome.tool_calls if call.never_ran for each in call.identity} - ran.keys()
        cited = [identity for verdict in blaming for identity in verdict.identities]
        yield from (identity for identity in cited or ran if identity not in turned_away)


def _only_unconfirmed(outcome: SubTaskOutcome) -> bool:
    failed = [verdict for verdict in outcome.criteria_verdicts if verdict.verdict == "fail"]
    return bool(failed) and all(verdict.blameless for verdict in failed)


def _is_stuck(call: ToolCall, outcome: SubTaskOutcome) -> bool:
    """Whether a call that was turned away repeats one of this subtask that ran and was not accepted."""
    if not call.never_ran or not call.target or _only_unconfirmed(outcome):
        return False
    return any(
        not other.never_ran and (other.tool, other.target) == (call.tool, call.target)
        for other in outcome.tool_calls
    )


def _failed_for_good(call: ToolCall) -> bool:
    if call.status is CallStatus.OK or call.status in _TRANSIENT or call.never_ran or not call.target:
        return False
    text = f"{call.error_output} {call.reason or ''}".casefold()
    return not any(word in text for word in _TRANSIENT_WORDS)
