"""The Dreamer's steps `consolidate`, `bankrupt` and `propose`, with days before a rule is proposed.

They work on level C (rules).

consolidate   strong, one-sided experience becomes a timeless rule, once per cluster and sign until its evidence
              has doubled (paper, section 7.2). A model words it; evidence and sign are computed.
bankrupt      a rule that the evidence contradicts gets a decay (paper, section 7.1)
propose       a rule that has held for long is proposed as permanent; only the operator can accept it
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from artoo.contracts.errors import BudgetExhausted, ModelError
from artoo.contracts.memory import Level, MegramState, MemoryAction, Origin, SOPDraft, TLayerProposal
from artoo.contracts.tags import Pair, is_kind, is_wide
from artoo.control.potentials import (
    DEMOTED_DECAY,
    PROMOTION_ATTENTION,
    PROMOTION_DECISION,
    RULE,
    Stimulus,
    contradicts,
    holds_as_such,
    promotable,
    promotion_scale,
)
from artoo.loops.lesson import Lesson
from artoo.loops.slow.passing import Draft, Pass, changed
from artoo.ports.dream import Cluster, RuleEvidence

FALSE, PROMOTED = "false promotions", "promotions"
RULES_PER_SLICE = 64
SOURCES = 24
# At most this many kinds of request are examined for a general rule about a tool.
KINDS = 200
RETRY_AFTER = timedelta(days=1)
STOOD_FOR = timedelta(days=14)
_PROPOSE = "cursor:propose"


async def bankrupt(work: Pass) -> None:
    """Demote every rule whose sign contradicts the current evidence about the rule's own pair."""
    async for slice_ in work.slices("cursor:bankrupt", work.limits.rules, RULES_PER_SLICE, work.store.standing):
        for standing in slice_.found:
            rule = standing.rule
            if not contradicts(rule.sigma, standing.decision):
                continue
            if await work.store.demote(rule.id, DEMOTED_DECAY, work.clock.now()):
                reason = f"evidence says {standing.decision:+.2f}, the rule {rule.sigma:+.0f}"
                work.findings.demoted.append(changed(rule, reason))
                if rule.state is MegramState.CONSOLIDATED:
                    await work.count(FALSE)


async def consolidate(work: Pass) -> None:
    """Search for clusters from where the last pass stopped, and promote as many to rules as the limit allows."""
    limits, drafts = work.limits, work.limits.drafts
    # If rules were promoted and later found false, the next clusters need more evidence.
    scale = work.findings.scale = promotion_scale(await work.tally(PROMOTED), await work.tally(FALSE))
    strong = partial(promotable, scale=scale)
    look = work.slices("cursor:consolidate", limits.pairs, limits.slice, partial(work.store.strong, select=strong))
    async for slice_ in look:
        for pair in slice_.found:
            if drafts > 0 and work.draft is not None:
                drafts -= await _promote(work, work.draft, pair)
            else:
                work.findings.drafts_skipped += 1


async def _promote(work: Pass, word: Draft, pair: Pair) -> int:
    """Promote a cluster to a rule if it has enough evidence. Return the number of drafts that the model was asked
    for (0 or 1)."""
    cluster = await work.store.cluster(pair, SOURCES)
    sign = 1.0 if cluster.decision > 0 else -1.0
    mark = f"promoted:{sign:+.0f}:{pair.space}|{pair.entity}"
    tried = f"tried:{mark}"
    strong = promotable(cluster.attention, cluster.decision, work.findings.scale)
    if not strong or not await _due(work, cluster, mark, tried) or not await _speaks(work, pair, sign):
        return 0
    draft: SOPDraft | None = None
    with suppress(ModelError, BudgetExhausted):
        draft = await word(cluster)
    if draft is None:
        work.findings.drafts_skipped += 1
        await work.store.set_mark(tried, work.clock.now().isoformat())
        return 1
    content = draft.rule if not draft.reason else f"{draft.rule} ({draft.reason})"
    lesson = Lesson(pair, MegramState.CONSOLIDATED, Stimulus(RULE, sign, 0.0), content, Level.COMMON_SENSE)
    sources = tuple(megram.id for megram in cluster.megrams)
    rule = await work.keep(lesson, Origin(sources=sources), mark, repr(cluster.attention))
    await work.count(PROMOTED)
    kind = "best practice" if sign > 0 else "constraint"
    reason = f"{kind}: attention {cluster.attention:.1f}, decision {cluster.decision:+.1f}"
    work.findings.promoted.append(changed(rule, reason))
    return 1


async def _speaks(work: Pass, pair: Pair, sign: float) -> bool:
    """Return whether a rule about `pair` is reliable in every prompt that would contain it.

    A rule about a tool in general applies to every kind of request. It therefore needs experience with several
    kinds, enough to expect that the next kind agrees. A rule about one kind of request is shown only for that kind.
    """
    if not is_wide(pair):
        return True
    says = MemoryAction.EXPLOIT if sign > 0 else MemoryAction.AVOID
    known = [kind for kind in await work.store.kinds(pair, KINDS) if kind.action is not MemoryAction.IGNORE]
    return holds_as_such(len(known), sum(kind.action is not says for kind in known))


async def _due(work: Pass, cluster: Cluster, mark: str, tried: str) -> bool:
    before = await work.store.mark(mark)
    if before is not None and cluster.attention < 2 * float(before):
        return False
    last = await work.store.mark(tried)
    return last is None or work.clock.now() - datetime.fromisoformat(last) >= RETRY_AFTER


async def propose(work: Pass) -> None:
    """Examine one slice of the rules, and propose at most as many as the limit of a pass."""
    await work.pace()
    slice_ = await work.store.standing(await work.store.mark(_PROPOSE) or None, RULES_PER_SLICE)
    for standing in slice_.found:
        if len(work.findings.proposals) == work.limits.proposals:
            break
        rule, mark = standing.rule, f"proposed:{standing.rule.id}"
        if _has_stood(work, standing) and await work.store.mark(mark) is None:
            proposal = TLayerProposal(
                id=work.ids.new(), proposed_at=work.clock.now(), text=rule.content, rule_ids=(rule.id,)
            )
            await work.store.propose(proposal, mark)
            work.publish(proposal)
            work.findings.proposals.append(proposal.id)
    await work.store.set_mark(_PROPOSE, slice_.after)


def _has_stood(work: Pass, standing: RuleEvidence) -> bool:
    """Return whether a rule has twice the evidence it needed, two weeks after its promotion, and was recalled
    recently.

    A rule that no plan recalls is not worth a place in every prompt. A rule about a tool for one kind of request
    does not belong in the prompts of other kinds.
    """
    rule, now = standing.rule, work.clock.now()
    return (
        not is_kind(rule.pair)
        and now - rule.created_at >= STOOD_FOR
        and rule.last_recalled_at is not None
        and now - rule.last_recalled_at < STOOD_FOR
        and standing.attention >= 2 * PROMOTION_ATTENTION
        and abs(standing.decision) >= 2 * PROMOTION_DECISION
        and not contradicts(rule.sigma, standing.decision)
    )
