"""Rank memory's advice into PREFER, MUST NOT and CAUTION, and cut the list; thresholds: `control/potentials.py`.

The functions are pure. They use no store, no model and no clock. Reference: paper, section 6.5.
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
    """Convert potentials and rules to the lists SHOULD PREFER, MUST NOT and CAUTION.

    If the present evidence of a rule's pair contradicts the rule, the rule is left out and reported. The evidence
    is used in its place (soft overwrite). `noted`: the ids of the rules for which such a contradiction was recorded
    before. If the evidence has become mixed, the rule is left out too, and a caution is returned. Evidence about a
    tool for this kind of request replaces the evidence about the tool in general. It also overrides a rule about
    the tool in general that says the opposite.

    If there are more than `limit` entries, they are ranked. Evidence about tools in general comes last. Among the
    others, MUST NOT comes before CAUTION and SHOULD PREFER, rules come before evidence, and stronger entries before
    weaker ones.
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
    # Prohibitions come before cautions and recommendations. Evidence about tools in general comes last.
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
"""The key by which entries are sorted, and their content. The key is general evidence (last), the kind of advice,
rule or evidence, and the negative strength. The content is the action and the entry."""


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
    # Attention measures how much evidence there is. The decision measures which action the evidence supports.
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
