"""A senior agent's review: code first, then one question to its model, and the verdict through the same door as
the operator's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from artoo.agents.board.rows import TaskClaim
from artoo.contracts.agents import ReviewReport, SubmittedWork
from artoo.contracts.errors import ArtooError
from artoo.contracts.settling import ClassifiedChange
from artoo.loops.asking import Asker, Standing
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.model import Known, Model, Tier
from artoo.team.approval import Approvals, Ruling
from artoo.team.demands import with_demands
from artoo.team.exhibits import exhibits, room_of

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


class TooMuchToJudge(ArtooError):
    """The model cannot be shown all that its yes would apply. Nothing was asked."""


class Reviewer:
    """One agent as reviewer. `port` speaks as the reviewer; `standing` is the agent's identity; `known` tells what
    is known of the model of its tier."""

    def __init__(
        self,
        name: str,
        port: Port,
        model: Model,
        clock: Clock,
        approvals: Approvals,
        standing: Standing,
        tier: Tier,
        known: Callable[[], Awaitable[Known]],
    ) -> None:
        self._name = name
        self._known = known
        self._asker = Asker(port, model, clock, tier, standing=standing)
        self._approvals = approvals

    async def review(self, claim: TaskClaim, work: SubmittedWork) -> tuple[Ruling | None, int]:
        """Approves or rejects; None: rejected. Also how many calls it took.

        Raises ModelError, BudgetExhausted, TooMuchToJudge (no verdict then), SandboxError, GovernanceRefused.
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
        room = room_of(await self._known())
        segments = exhibits(work, request, changes, room)
        if segments is None:
            raise TooMuchToJudge(
                f"request, result and changes are more than its model can be shown ({room} characters)"
            )
        return await self._asker.ask("ReviewReport", ReviewReport, segments, cause=None, max_tokens=_MAX_TOKENS)
