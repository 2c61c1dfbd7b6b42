"""Rank memory's advice into PREFER, MUST NOT and CAUTION, and cut the list; thresholds: `control/potentials.py`.

This module is pure. It uses no store, no model and no clock. Reference: paper, section 6.5.
"""

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

    A rule that the current evidence of its pair contradicts is left out and reported; the evidence is used instead
    (soft overwrite). `noted`: ids of the rules whose contradicting evidence has been recorded before. If the
    evidence has become mixed, the rule is left out as well and a caution is given. Evidence of a tool for this kind
    of request replaces the evidence of the tool in general, and overrides a rule about the tool in general that
    says the opposite.

    If there are more than `limit` entries, they are ranked: evidence of tools in general comes last; then MUST NOT
    before CAUTION before SHOULD PREFER, rules before evidence, and stronger before weaker entries.
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
    # Prohibitions come before cautions and recommendations. Evidence of tools in general comes last.
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
"""Sort key and content: general evidence (last), kind of advice, rule or evidence, negative strength; action,
entry."""


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
    # Attention measures how much evidence there is, decision which action it supports.
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
