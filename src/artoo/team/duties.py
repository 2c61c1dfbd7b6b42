"""The heartbeat duty for board and mailbox, which takes the next work, and runs it in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from artoo.agents.board.next_task import Allocation
from artoo.agents.board.rows import TaskClaim
from artoo.agents.heartbeat.duties import Done, throttling
from artoo.agents.mail.rows import MailClaim
from artoo.contracts.agents import FOREIGN, OPERATOR, BoardState, BoardTask
from artoo.contracts.errors import (
    ArtooError,
    BudgetExhausted,
    ClaimLost,
    ConfigurationError,
    GovernanceRefused,
    IdentityRefused,
    ModelAnswerInvalid,
    ModelError,
    ModelRefused,
    ModelUnreachable,
    SandboxError,
)
from artoo.team.answering import answer
from artoo.team.bench import Bench, Member
from artoo.team.holding import held
from artoo.team.reviewing import TooMuchToJudge, review
from artoo.team.working import work_on
from artoo.workspace.directory import WorkspaceInUse

LoadMember = Callable[[], Awaitable[Member]]


@dataclass(slots=True)
class WorkDuty:
    """The duty that handles the board and the mailbox. Implements `artoo.agents.heartbeat.duties.Duty`.

    `load` reads the current identity of the agent at each call.
    """

    agent: str
    bench: Bench
    allocation: Allocation
    load: LoadMember
    name: str = "work"
    _unjudged: tuple[str, int] | None = None

    async def due(self) -> str | None:
        """Return a description of the next work, or None. Implements `Duty.due`."""
        item = await self.allocation.peek(self.agent)
        return None if item is None else f"{item.kind} {item.id}"

    async def do(self) -> Done:
        """Do the next work. Implements `Duty.do`. If the identity is not the accepted one, no work is claimed. The
        agent is then stopped, and gets no work until the operator accepts the identity."""
        try:
            member = await self.load()
        except IdentityRefused:
            return Done(items=1)
        except ConfigurationError as error:
            return Done(trouble=str(error))
        try:
            claim = await self.allocation.next(self.agent)
        except (ClaimLost, GovernanceRefused):
            # Another process claimed it first.
            return Done()
        if claim is None:
            return Done()
        try:
            return await self._turn_to(member, claim)
        except IdentityRefused as error:
            await self._let_go(claim, str(error))
            return Done(items=1)
        except ArtooError as error:
            await self._let_go(claim, str(error), counted=True)
            raise

    async def _turn_to(self, member: Member, claim: TaskClaim | MailClaim) -> Done:
        if isinstance(claim, MailClaim):
            return await answer(self.bench, member, claim)
        reviews = claim.task.state is BoardState.REVIEW
        done = await (self._review(member, claim) if reviews else work_on(self.bench, member, claim))
        return replace(done, bounded=done.items) if _is_bounded(claim.task) else done

    async def _review(self, member: Member, claim: TaskClaim) -> Done:
        """Review a submission. If there is no verdict, the review is released for the next reviewer or left to the
        operator."""
        task, bench = claim.task, self.bench
        work = await bench.office.approvals.work(task)
        if work is None:
            reason = "its evidence is not there, so that no agent can judge it"
            await bench.office.board.reviews.leave_to_operator(task.id, task.submission, reason)
            return Done(items=1)
        try:
            reviewing = review(bench, member, claim, work)
            calls = await held(reviewing, lambda: bench.office.board.work.renew(claim), bench.office.clock)
        except (ModelError, BudgetExhausted) as error:
            return await self._not_judged(claim, error)
        except TooMuchToJudge as error:
            await bench.office.board.reviews.leave_to_operator(
                task.id, task.submission, f"{self.agent} cannot judge it: {error}"
            )
            return Done(items=1)
        except WorkspaceInUse as error:
            await bench.office.board.reviews.let_go(claim)
            return Done(items=1, trouble=str(error))
        except SandboxError as error:
            await bench.office.board.reviews.leave_to_operator(task.id, task.submission, str(error))
            return Done(items=1)
        except GovernanceRefused:
            # the operator or another process has already decided, or the files have changed
            await bench.office.board.reviews.let_go(claim)
            return Done(items=1)
        except BaseException:
            await asyncio.shield(bench.office.board.reviews.let_go(claim))
            raise
        return Done(items=1, llm_calls=calls)

    async def _not_judged(self, claim: TaskClaim, error: ModelError | BudgetExhausted) -> Done:
        """Release the review if the endpoint failed. If this model cannot judge the submission, leave it to the
        operator."""
        task, bench = claim.task, self.bench
        endpoint = isinstance(error, ModelUnreachable) or (
            isinstance(error, ModelRefused) and not error.of_this_prompt
        )
        if endpoint:
            await bench.office.board.reviews.let_go(claim)
            return Done(items=1, llm_calls=1, throttled=throttling(error), trouble=str(error))
        seen = (task.id, task.submission)
        first = self._unjudged != seen
        self._unjudged = seen
        if first and isinstance(error, ModelAnswerInvalid):
            await bench.office.board.reviews.let_go(claim)
        else:
            reason = f"{self.agent} cannot judge it: {error}"
            await bench.office.board.reviews.leave_to_operator(task.id, task.submission, reason)
        return Done(items=1, llm_calls=1)

    async def _let_go(self, claim: TaskClaim | MailClaim, reason: str, *, counted: bool = False) -> None:
        """Release work that this agent may not continue."""
        bench = self.bench
        try:
            if isinstance(claim, MailClaim):
                await bench.office.mailbox.release(claim)
            elif claim.task.state is BoardState.REVIEW:
                await bench.office.board.reviews.let_go(claim)
            else:
                await bench.office.board.work.give_back(claim, reason, counted=counted)
        except GovernanceRefused:
            return


def _is_bounded(task: BoardTask) -> bool:
    """Return whether the number of such tasks is limited, because the operator creates them or because there is a
    quota for foreign agents."""
    return task.creator == OPERATOR or task.creator.startswith(FOREIGN)
