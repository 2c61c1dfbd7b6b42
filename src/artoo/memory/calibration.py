"""Derive advice for a plan from potentials and rules (paper, section 6.5). Pure: no store, no model, no clock."""

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
from artoo.contracts.tags import Pair, is_kind, is_wide, tool_of

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
    hypotheses: Sequence[CalibrationEntry] = (),
    limit: int = ENTRIES,
) -> Calibration:
    """Map potentials and rules to SHOULD PREFER, MUST NOT and CAUTION.

    A rule that its pair's live evidence contradicts is left out and reported: the evidence speaks instead (soft
    overwrite). `noted`: the rules against which that very evidence was written down before. One whose evidence has
    become mixed is left out too, and the caution said. What is known of a tool for this kind of request speaks in
    the place of what is known of it as such, and excepts this request from a rule about it as such that says the
    opposite.

    When there is more than `limit`, evidence of tools as such comes last; before it what forbids comes before what
    warns before what recommends, rules before evidence, stronger before weaker.
    """
    by_pair = {entry.pair: entry for entry in potentials}
    by_kind = {entry.space: entry for entry in potentials if is_kind(entry.pair) and _says(entry)}
    contradicted = [
        found for rule in rules if (found := _contradiction(rule, by_pair.get(rule.pair), rule.id in noted))
    ]
    silent = {entry.rule_id for entry in contradicted}
    silent |= {rule.id for rule in rules if _is_mixed(by_pair.get(rule.pair))}
    silent |= {rule.id for rule in rules if is_wide(rule.pair) and _speaks_against(by_kind.get(rule.space), rule)}
    ranked = [_ranked_rule(rule) for rule in rules if rule.id not in silent]
    ranked += [
        _ranked_evidence(entry, (contents or {}).get(entry.pair, ""))
        for entry in by_pair.values()
        if _says(entry) and not (is_wide(entry.pair) and entry.space in by_kind)
    ]
    # What forbids comes before what warns before what recommends, and tools as such come last.
    ranked.sort(key=lambda item: item[:4])
    chosen = ranked[:limit]
    return Calibration(
        should_prefer=_of(chosen, MemoryAction.EXPLOIT),
        must_not=_of(chosen, MemoryAction.AVOID),
        caution=_of(chosen, MemoryAction.CAUTION),
        contradicted=tuple(contradicted),
        known=tuple(known[:limit]),
        hypotheses=tuple(hypotheses),
    )


_Ranked = tuple[bool, int, int, float, MemoryAction, CalibrationEntry]
"""Whether it comes last, what it does, rule or evidence, how weak it is; and what all this is of."""


def _says(entry: Potentials) -> bool:
    return entry.action is not MemoryAction.IGNORE


def _is_mixed(entry: Potentials | None) -> bool:
    return entry is not None and entry.action is MemoryAction.CAUTION


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
    return False, _KINDS[action], 0, -rule.f, action, entry


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
    # Attention says where to look, decision what to do.
    strength = potentials.attention if action is MemoryAction.CAUTION else abs(potentials.decision)
    return is_wide(potentials.pair), _KINDS[action], 1, -strength, action, entry


def _contradiction(rule: SOPRecord, live: Potentials | None, noted: bool) -> RuleContradicted | None:
    if live is None or not _speaks_against(live, rule):
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


def _speaks_against(live: Potentials | None, rule: SOPRecord) -> bool:
    against = MemoryAction.AVOID if rule.sigma > 0 else MemoryAction.EXPLOIT
    return live is not None and live.action is against
