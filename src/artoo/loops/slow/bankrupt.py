"""Trust bankruptcy (paper, section 7.1): a rule that reality contradicts loses its timelessness."""

from __future__ import annotations

from artoo.contracts.memory import MegramState
from artoo.control.potentials import DEMOTED_DECAY, contradicts
from artoo.loops.slow.passing import Pass, changed

CURSOR = "cursor:bankrupt"
FALSE = "false promotions"
RULES_PER_SLICE = 64


async def bankrupt(work: Pass) -> None:
    """Demotes every rule whose sign the live evidence of its own pair contradicts."""
    after = await work.store.mark(CURSOR) or None
    budget = work.limits.rules
    while budget > 0 and work.in_time:
        await work.pace()
        slice_ = await work.store.standing(after, min(RULES_PER_SLICE, budget))
        for standing in slice_.found:
            rule = standing.rule
            if not contradicts(rule.sigma, standing.decision):
                continue
            if await work.store.demote(rule.id, DEMOTED_DECAY, work.clock.now()):
                reason = f"evidence says {standing.decision:+.2f}, the rule {rule.sigma:+.0f}"
                work.findings.demoted.append(changed(rule, reason))
                if rule.state is MegramState.CONSOLIDATED:
                    await work.count(FALSE)
        budget -= slice_.examined
        after = slice_.after
        if after is None:
            break
    await work.store.set_mark(CURSOR, after)
    work.findings.finished = work.findings.finished and after is None
