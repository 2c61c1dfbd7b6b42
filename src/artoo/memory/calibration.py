"""Advice for a plan from potentials and rules (paper, section 6.5). Pure: no store, no model, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artoo.contracts.memory import (
    Calibration,
    CalibrationEntry,
    MemoryAction,
    Potentials,
    RuleContradicted,
    SOPRecord,
)
from artoo.contracts.tags import Pair, tool_of

ENTRIES = 10

_KINDS: Mapping[MemoryAction, int] = {
    MemoryAction.AVOID: 0,
    MemoryAction.CAUTION: 1,
    MemoryAction.EXPLOIT: 2,
}


def calibration(
    potentials: Sequence[Potentials],
    rules: Sequence[SOPRecord],
    *,
    contents: Mapping[Pair, str] | None = None,
    noted: frozenset[str] = frozenset(),
    known: Sequence[str] = (),
    hypotheses: Sequence[str] = (),
    limit: int = ENTRIES,
) -> Calibration:
    """Maps potentials and rules to SHOULD PREFER, MUST NOT and CAUTION.

    A rule that its pair's live evidence contradicts is left out and reported: the evidence speaks instead (soft
    overwrite). `noted`: the rules against which that very evidence was written down before. When there is more than
    `limit`, what forbids comes before what warns before what recommends, rules before evidence, stronger before
    weaker.
    """
    by_pair = {entry.pair: entry for entry in potentials}
    contradicted = [
        found for rule in rules if (found := _contradiction(rule, by_pair.get(rule.pair), rule.id in noted))
    ]
    overruled = {entry.rule_id for entry in contradicted}
    ranked = [_ranked_rule(rule) for rule in rules if rule.id not in overruled]
    ranked += [
        _ranked_evidence(entry, (contents or {}).get(entry.pair, ""))
        for entry in by_pair.values()
        if entry.action is not MemoryAction.IGNORE
    ]
    ranked.sort(key=lambda item: item[:3])
    chosen = ranked[:limit]
    return Calibration(
        should_prefer=_of(chosen, MemoryAction.EXPLOIT),
        must_not=_of(chosen, MemoryAction.AVOID),
        caution=_of(chosen, MemoryAction.CAUTION),
        contradicted=tuple(contradicted),
        known=tuple(known[:limit]),
        hypotheses=tuple(hypotheses),
    )


_Ranked = tuple[int, int, float, MemoryAction, CalibrationEntry]


def _of(chosen: Sequence[_Ranked], action: MemoryAction) -> tuple[CalibrationEntry, ...]:
    return tuple(entry for *_, kind, entry in chosen if kind is action)


def _ranked_rule(rule: SOPRecord) -> _Ranked:
    action = MemoryAction.EXPLOIT if rule.sigma > 0 else MemoryAction.AVOID
    entry = CalibrationEntry(
        space=rule.space,
        entity=rule.entity,
        content=rule.content,
        rule_id=rule.id,
        enforced=action is MemoryAction.AVOID and tool_of(rule.pair) is not None,
    )
    return _KINDS[action], 0, -rule.f, action, entry


def _ranked_evidence(potentials: Potentials, content: str) -> _Ranked:
    action = potentials.action
    entry = CalibrationEntry(
        space=potentials.space,
        entity=potentials.entity,
        attention=potentials.attention,
        decision=potentials.decision,
        content=content,
        enforced=action is not MemoryAction.EXPLOIT and tool_of(potentials.pair) is not None,
    )
    return _KINDS[action], 1, -potentials.attention, action, entry


def _contradiction(rule: SOPRecord, live: Potentials | None, noted: bool) -> RuleContradicted | None:
    against = MemoryAction.AVOID if rule.sigma > 0 else MemoryAction.EXPLOIT
    if live is None or live.action is not against:
        return None
    return RuleContradicted(
        rule_id=rule.id,
        space=rule.space,
        entity=rule.entity,
        rule_sigma=rule.sigma,
        decision=live.decision,
        reason=f"recent experience says {live.action.value} (decision {live.decision:+.2f})",
        noted=noted,
    )
