"""Upward consolidation (paper, section 7.2): strong, one-sided experience becomes a timeless rule.

Once per cluster and sign until its evidence has doubled. A language model words the rule; what it rests on,
and whether it is a practice or a constraint, is arithmetic. Rules and hypotheses are never evidence for it. Where
promoted rules have proved false, the next ones need more. What is so for one kind of request becomes a rule for it.
A rule about a tool as such speaks to every request, and needs so many kinds that the next is likely the same.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from artoo.contracts.errors import BudgetExhausted, ModelError
from artoo.contracts.memory import Level, MegramState, MemoryAction, Origin, SOPDraft
from artoo.contracts.tags import Pair, is_wide
from artoo.control.potentials import RULE, Stimulus, holds_as_such, promotable, promotion_scale
from artoo.loops.lesson import Lesson
from artoo.loops.slow.bankrupt import FALSE
from artoo.loops.slow.passing import Draft, Pass, changed
from artoo.ports.dream import Cluster

CURSOR = "cursor:consolidate"
PROMOTED = "promotions"
SOURCES = 24
KINDS = 200
"""Kinds of request that are asked about a tool as such."""
RETRY_AFTER = timedelta(days=1)


async def consolidate(work: Pass) -> None:
    """Looks for clusters from where the last pass stopped and promotes as many as the bound allows."""
    after = await work.store.mark(CURSOR) or None
    pairs, drafts = work.limits.pairs, work.limits.drafts
    scale = work.findings.scale = promotion_scale(await work.tally(PROMOTED), await work.tally(FALSE))
    while pairs > 0 and work.in_time:
        await work.pace()
        slice_ = await work.store.strong(after, min(work.limits.slice, pairs), partial(promotable, scale=scale))
        for pair in slice_.found:
            if drafts > 0 and work.draft is not None:
                drafts -= await _promote(work, work.draft, pair)
            else:
                work.findings.drafts_skipped += 1
        pairs -= slice_.examined
        after = slice_.after
        if after is None:
            break
    await work.store.set_mark(CURSOR, after)
    work.findings.finished = work.findings.finished and after is None


async def _promote(work: Pass, word: Draft, pair: Pair) -> int:
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
    """Whether a rule about `pair` may be told where it would be: for a tool as such, to every kind of request."""
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
