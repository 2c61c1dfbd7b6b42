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

    Never the last tool that can read, nor the last that can write: a plan needs hands.
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
    """(identity, target) of calls that failed for good; never the request's own output, never a passing fault."""
    pairs = [
        (identity, call.target)
        for outcome in outcomes
        if outcome.status == "failed"
        for call in outcome.tool_calls
        if _failed_for_good(call) and not any(call.target.endswith(path) for path in own_outputs)
        for identity in call.identity
    ]
    return tuple(dict.fromkeys(pairs))


def _cited(outcomes: Iterable[SubTaskOutcome]) -> Iterable[str]:
    for outcome in outcomes:
        if outcome.status != "failed":
            continue
        failed = [verdict for verdict in outcome.criteria_verdicts if verdict.verdict == "fail"]
        cited = [identity for verdict in failed for identity in verdict.identities]
        yield from cited or [identity for call in outcome.tool_calls for identity in call.identity]


def _failed_for_good(call: ToolCall) -> bool:
    if call.status is CallStatus.OK or call.status in _TRANSIENT or not call.target:
        return False
    text = f"{call.error_output} {call.reason or ''}".casefold()
    return not any(word in text for word in _TRANSIENT_WORDS)
