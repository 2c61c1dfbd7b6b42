"""Proposals for the T layer: a rule that has stood for long and never wavered may be asked to become permanent.

Only the operator can accept one. Nothing here changes T.
"""

from __future__ import annotations

from datetime import timedelta

from artoo.contracts.memory import TLayerProposal
from artoo.contracts.tags import is_kind
from artoo.control.potentials import PROMOTION_ATTENTION, PROMOTION_DECISION, contradicts
from artoo.loops.slow.bankrupt import RULES_PER_SLICE
from artoo.loops.slow.passing import Pass
from artoo.ports.dream import Standing

CURSOR = "cursor:propose"
STOOD_FOR = timedelta(days=14)


async def propose(work: Pass) -> None:
    """Looks at one slice of the rules and proposes at most as many as one pass may."""
    await work.pace()
    after = await work.store.mark(CURSOR) or None
    slice_ = await work.store.standing(after, RULES_PER_SLICE)
    for standing in slice_.found:
        if len(work.findings.proposals) == work.limits.proposals:
            break
        mark = f"proposed:{standing.rule.id}"
        if _has_stood(work, standing) and await work.store.mark(mark) is None:
            await _put_forward(work, standing, mark)
    await work.store.set_mark(CURSOR, slice_.after)


def _has_stood(work: Pass, standing: Standing) -> bool:
    """Twice the evidence that a promotion needs, still, two weeks after it, and somebody has asked for it since.

    A rule that nobody recalls is not worth its place in every prompt, however strong it once was, and one about a
    tool for one kind of request has no business in the others'.
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


async def _put_forward(work: Pass, standing: Standing, mark: str) -> None:
    rule = standing.rule
    proposal = TLayerProposal(
        id=work.ids.new(), proposed_at=work.clock.now(), text=rule.content, rule_ids=(rule.id,)
    )
    await work.store.propose(proposal, mark)
    work.publish(proposal)
    work.findings.proposals.append(proposal.id)
