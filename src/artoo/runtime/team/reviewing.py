"""A senior agent's review: code first, then one question to its model, and the verdict through the same door as
the operator's."""

from __future__ import annotations

from collections.abc import Iterator

from artoo.agents.board_rows import TaskClaim
from artoo.contracts.agents import ReviewReport, SubmittedWork
from artoo.contracts.settling import ClassifiedChange
from artoo.contracts.shortened import without_middle
from artoo.loops.asking import Asker, Standing
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.model import Model, Tier
from artoo.prompts.segments import Segment
from artoo.runtime.team.approval import Approvals, Ruling
from artoo.runtime.team.demands import with_demands
from artoo.tools.review import line_of

LONGEST_RESULT, LONGEST_EVIDENCE, LONGEST_CHANGES = 1_500, 2_500, 3_500
"""Characters of each part that the reviewing model sees; a small model must have room for all of it."""

_MAX_TOKENS = 400


def problems_of(work: SubmittedWork) -> tuple[str, ...]:
    """What speaks against a submission without any model: unmet criteria, withheld acts, contradicted claims."""
    return tuple(dict.fromkeys(_problems(work)))


def _problems(work: SubmittedWork) -> Iterator[str]:
    yield from (f"not met: {criterion}" for criterion in work.unmet)
    yield from (f"not done, because it needed consent: {act}" for act in work.withheld)
    for verdict in work.verdicts:
        if verdict.contradicted:
            yield f"the evidence contradicts it: {verdict.criterion}"
        elif verdict.verdict == "fail":
            yield f"not met: {verdict.criterion}"
    if work.ending not in ("accept", "success"):
        yield f"the work ended as {work.ending or 'unknown'}"


class Reviewer:
    """One agent as reviewer. `port` speaks as the reviewer; `standing` is the agent's identity."""

    def __init__(
        self,
        name: str,
        port: Port,
        model: Model,
        clock: Clock,
        approvals: Approvals,
        standing: Standing,
        tier: Tier = Tier.BRAIN,
    ) -> None:
        self._name = name
        self._asker = Asker(port, model, clock, tier, standing=standing)
        self._approvals = approvals

    async def review(self, claim: TaskClaim, work: SubmittedWork) -> tuple[Ruling | None, int]:
        """Approves or rejects; None: rejected. Also how many calls it took.

        Raises ModelError and BudgetExhausted (no verdict then), what the board raises, SandboxError.
        """
        task = claim.task
        problems = problems_of(work)
        if problems:
            await self._reject(claim, problems)
            return None, 0
        proposal = await self._approvals.look(task)
        digest = None if proposal is None else proposal.digest
        if proposal is not None and proposal.conflicts:
            return await self._approve(claim, "", digest), 0
        report = await self._ask(with_demands(task), work, () if proposal is None else proposal.review.changes)
        if report.verdict == "reject":
            await self._reject(claim, report.reasons or ("no reason given",))
            return None, 1
        return await self._approve(claim, "; ".join(report.reasons), digest), 1

    async def _reject(self, claim: TaskClaim, reasons: tuple[str, ...]) -> None:
        await self._approvals.reject(
            claim.task.id, self._name, "; ".join(reasons), submission=claim.task.submission
        )

    async def _approve(self, claim: TaskClaim, reason: str, digest: str | None) -> Ruling:
        """What was looked at, and nothing else. Also a submission that conflicts: artoo sends that back itself."""
        return await self._approvals.approve(
            claim.task.id, self._name, reason, submission=claim.task.submission, digest=digest
        )

    async def _ask(self, request: str, work: SubmittedWork, changes: tuple[ClassifiedChange, ...]) -> ReviewReport:
        segments = {
            Segment.PROJECT_GUIDE: work.guide,
            Segment.TASK: request,
            Segment.CONTEXT: f"Result:\n{without_middle(work.summary, LONGEST_RESULT)}",
            Segment.EVIDENCE: "\n\n".join((_evidence(work), _changes(changes))),
        }
        return await self._asker.ask("ReviewReport", ReviewReport, segments, cause=None, max_tokens=_MAX_TOKENS)


def _evidence(work: SubmittedWork) -> str:
    lines = [f"- {verdict.verdict}: {verdict.criterion} ({verdict.evidence})" for verdict in work.verdicts]
    lines += [f"- {call}" for call in work.calls]
    return without_middle("\n".join(lines) or "(none)", LONGEST_EVIDENCE)


def _changes(changes: tuple[ClassifiedChange, ...]) -> str:
    if not changes:
        return "Files changed: none"
    lines = ["Files changed:"]
    for change in changes:
        lines.append(f"- {line_of(change)}")
        lines += [f"    {line}" for line in change.diff]
    return without_middle("\n".join(lines), LONGEST_CHANGES)
