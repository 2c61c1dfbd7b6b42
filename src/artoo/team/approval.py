"""Approve or reject a board submission, apply its files all or none, and complete the task.

Reference: SPEC sections 8 and 11.

    look ─ conflict ───────────────────────► sent back by artoo, with the paths
      └─ Law 1 asks, and no one may approve ► stays in review, for the operator
      └─ permitted ─ recorded ─ applied ─────► completed

The approval is recorded in `approval.json` before the files are changed. If the process dies in between, the next
start completes the recorded approval. The files are thus applied once, and the task is completed once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.agents.board.board import MOST_TASKS, Board
from artoo.agents.board.reviews import check_waiting
from artoo.contracts.agents import FOREIGN, OPERATOR, POLICY, BoardState, BoardTask, SubmittedWork
from artoo.contracts.changes import Conflict
from artoo.contracts.criteria import Assurance
from artoo.contracts.errors import ClaimLost, GovernanceRefused, SandboxError
from artoo.contracts.execution import assurance_of
from artoo.contracts.settling import ApplyMode
from artoo.runtime.approvals.consent import Answers
from artoo.runtime.changes.submissions import Intent, Submission, Submissions, writing
from artoo.team.locks import PATIENCE_SECONDS, alone
from artoo.team.proposal import Proposal, carry_out, propose, took_effect
from artoo.tools.approval.policy import Policies
from artoo.workspace.commit import undo
from artoo.workspace.directory import WorkspaceInUse

if TYPE_CHECKING:
    from artoo.cluster.exchange import Exchange

logger = logging.getLogger(__name__)

_SHOWN = 5
_UNCONFIRMED = "nothing has confirmed what was handed in: it is a claim"
_UNREADABLE = "the evidence of what was handed in cannot be read: it is a claim"


@dataclass(frozen=True, slots=True)
class Ruling:
    """The result of an approval. The task is `completed`, is `waiting` for the operator, or was sent back (neither
    is true).

    `why` lists what prevents the approval. `proposal` contains the changes that need approval.
    """

    task: BoardTask
    completed: bool = False
    waiting: bool = False
    why: tuple[str, ...] = ()
    proposal: Proposal | None = None


@dataclass
class Approvals:
    """Reviews, approves and rejects submissions, and applies their files.

    `allow`: the standing permissions in the configuration. `mode`: decides which changes are applied without
    approval. `machine`: the name of this machine, if several machines share the database. `exchange` fetches the
    submissions of other machines.
    """

    board: Board
    submissions: Submissions
    allow: Sequence[str]
    mode: ApplyMode
    machine: str = ""
    exchange: Exchange | None = None

    async def look(self, task: BoardTask) -> Proposal | None:
        """Return the changes that the latest submission of a task would make here. Return None if it contains no
        files.

        Raises SandboxError, for example if the submission of another machine does not fit the files here. Raises
        WorkspaceInUse while another process reviews or decides this task, as all methods here that take the lock
        do.
        """
        async with self._ruling(task.id), self._at_hand(task):
            return await self._proposal(task)

    async def work(self, task: BoardTask) -> SubmittedWork | None:
        """Return the evidence of the latest submission, whichever machine made it. Return None if it is missing or
        cannot be read."""
        if self.exchange is not None:
            return await self.exchange.work(task)
        return await asyncio.to_thread(self._papers(task).work)

    @asynccontextmanager
    async def by_hand(self, task: BoardTask, *, applying: bool) -> AsyncGenerator[None]:
        """Let the operator apply the submission of another machine by hand while the context is open. The task
        stays in review.

        `applying`: true if only this machine may apply the submission from now on. Raises the errors of `look`.
        Raises ClaimLost if another machine is applying it.
        """
        async with self._alone(task.id), self._at_hand(task):
            if applying:
                await self._take(task)
            try:
                yield
            finally:
                await asyncio.shield(self._let_go_if_untouched(task))

    async def approve(
        self, task_id: str, actor: str, reason: str, *, submission: int, digest: str | None = None
    ) -> Ruling:
        """Approve a submission on behalf of an agent or of the operator. `digest`: the digest of the changes that
        were reviewed. Only these changes are applied.

        Raises ActorRefused, MoveRefused and ClaimLost in the same cases as the board. Raises SandboxError if
        nothing can be applied.
        """
        intent = Intent(actor=actor, reason=reason, submission=submission, digest=digest or "")
        # This is checked before the files are loaded, because the store deletes the files of approved submissions.
        task = await self.board.get(task_id)
        check_waiting(task)
        async with self._ruling(task_id), self._at_hand(task):
            claim = await self.board.reviews.take(task_id, actor)
            if claim.task.submission != submission:
                raise ClaimLost(
                    f"Task {task_id}: what was reviewed is submission {submission}, what waits is"
                    f" {claim.task.submission}; look at that one."
                )
            return await self._rule(claim.task, intent)

    async def pass_by_policy(self, task: BoardTask) -> Ruling:
        """Approve a submission that the trust policy does not require to be reviewed, if Law 1 allows that and no
        one has decided yet."""
        async with self._ruling(task.id):
            now = await self.board.get(task.id)
            if now.state is not BoardState.REVIEW or now.submission != task.submission:
                return Ruling(now, completed=now.state is BoardState.COMPLETED)
            return await self._rule(now, Intent(actor=POLICY, reason="", submission=task.submission, digest=""))

    async def reject(self, task_id: str, actor: str, reasons: str, *, submission: int | None = None) -> BoardTask:
        """Reject a submission. Its workspace is kept for the next attempt. An approval that was interrupted is
        undone."""
        async with self._ruling(task_id):
            task = await self.board.get(task_id)
            rejected = await self.board.reviews.reject(task_id, actor, reasons, submission=submission)
            papers = self._papers(task)
            intent = await asyncio.to_thread(papers.noted)
            if intent is not None:
                await asyncio.to_thread(self._take_back, task, papers, intent)
            return rejected

    async def finish_cut(self) -> tuple[str, ...]:
        """Complete interrupted approvals, and approve submissions that need no review. Returns the ids of their
        tasks.

        If an approval cannot be completed now, the next call tries again.
        """
        finished: list[str] = []
        for task in await self._begun_here():
            try:
                if await self._finish(task.id):
                    finished.append(task.id)
            except WorkspaceInUse:
                # another process holds the lock, so the next call tries again The next call retries.
                continue
            except (GovernanceRefused, SandboxError) as error:
                logger.warning("the approval of task %s is not finished yet: %s", task.id, error)
        return tuple(finished)

    async def _begun_here(self) -> list[BoardTask]:
        """Return the tasks in review whose files are on this machine, and those that this machine may apply."""
        waiting = await self.board.list({BoardState.REVIEW}, limit=MOST_TASKS)
        found = {task.id: task for task in waiting if task.made_on == self.machine}
        if self.exchange is not None:
            for kept in await self.exchange.differences.of_machine(self.machine):
                if kept.applying == self.machine and kept.task not in found:
                    found[kept.task] = await self.board.get(kept.task)
        return list(found.values())

    async def _finish(self, task_id: str) -> bool:
        async with self._ruling(task_id, patience=0.0):
            task = await self.board.get(task_id)
            papers = self._papers(task)
            intent = await asyncio.to_thread(papers.noted)
            if task.state is not BoardState.REVIEW:
                # The task is no longer in review. If it is not completed, the interrupted approval is undone.
                if intent is not None and task.state is not BoardState.COMPLETED:
                    await asyncio.to_thread(self._take_back, task, papers, intent)
                await self._let_go(task)
                return False
            if intent is not None:
                await self._carry_out(task, papers, intent)
                return True
            await self._let_go_if_untouched(task)
            if (
                self._is_elsewhere(task)
                or task.reviewer == OPERATOR
                or not await self.board.reviews.passes(task_id)
            ):
                return False
            intent = Intent(actor=POLICY, reason="", submission=task.submission, digest="")
            return (await self._rule(task, intent)).completed

    def _at_hand(self, task: BoardTask) -> AbstractAsyncContextManager[None]:
        """Keep the submission of another machine unpacked over the files here while the context is open."""
        return nullcontext() if self.exchange is None else self.exchange.at_hand(task)

    def _is_elsewhere(self, task: BoardTask) -> bool:
        return self.exchange is not None and self.exchange.is_elsewhere(task)

    async def _take(self, task: BoardTask) -> None:
        """Claim the right to apply a submission for this machine. Raises ClaimLost if another machine has it."""
        if self.exchange is not None:
            await self.exchange.differences.take(task.id, task.submission)

    async def _let_go_if_untouched(self, task: BoardTask) -> None:
        """Release the right to apply, so that other machines can claim it. It is kept if a part of the changes was
        applied here by hand."""
        if self.exchange is None or await asyncio.to_thread(took_effect, self.submissions, task.id):
            return
        await self._let_go(task)

    async def _let_go(self, task: BoardTask) -> None:
        if self.exchange is not None:
            await self.exchange.differences.let_go(task.id, task.submission)

    def _papers(self, task: BoardTask) -> Submission:
        return self.submissions.of(task.id, task.submission)

    async def _proposal(self, task: BoardTask) -> Proposal | None:
        return await asyncio.to_thread(propose, self.submissions, task.id, self.mode) if task.submission else None

    async def _rule(self, task: BoardTask, intent: Intent) -> Ruling:
        if intent.actor == POLICY and (why := await self._why_a_claim(task)):
            left = await self.board.reviews.leave_to_operator(task.id, task.submission, why)
            return Ruling(left, waiting=True, why=(why,))
        # The changes are reviewed again under the lock, because the user's files may have changed since the changes
        # were shown.
        papers, proposal = self._papers(task), await self._proposal(task)
        if proposal is None:
            try:
                await asyncio.to_thread(self._require_no_files, task, papers)
            except SandboxError as error:
                if intent.actor != POLICY:
                    raise
                left = await self.board.reviews.leave_to_operator(task.id, task.submission, str(error))
                return Ruling(left, waiting=True, why=(str(error),))
            return Ruling(await self._complete(task, intent), completed=True)
        if proposal.conflicts:
            return await self._send_back(task, proposal.conflicts)
        agreed = intent.digest == proposal.digest
        if intent.digest and not agreed:
            raise ClaimLost(f"Task {task.id}: its files are not as they were when this was reviewed; look again.")
        permitted = await self._permitted(proposal) if proposal.asks else ""
        if proposal.asks and not permitted and not (agreed and intent.actor == OPERATOR):
            return await self._left(task, intent, proposal)
        reason = "; ".join(filter(None, (intent.reason, permitted)))
        intent = intent.model_copy(update={"reason": reason, "digest": proposal.digest})
        # The approval is recorded before the files are changed, so that the next start can complete an interrupted
        # apply.
        await self._take(task)
        await asyncio.to_thread(papers.note, intent)
        return await self._carry_out(task, papers, intent)

    async def _why_a_claim(self, task: BoardTask) -> str:
        """Return the reason why the result is not confirmed, so that the operator must review it. Return "" if it
        need not be reviewed for this reason."""
        # A foreign agent gets the assurance of the result with the result, so its tasks need no operator's review
        # for this reason.
        if task.creator.startswith(FOREIGN):
            return ""
        work = await self.work(task)
        if work is None:
            return _UNREADABLE
        return _UNCONFIRMED if assurance_of(work.verdicts) is Assurance.UNVERIFIED else ""

    async def _permitted(self, proposal: Proposal) -> str:
        """Return the standing permissions that together cover all changes which need approval. Return nothing if
        they do not cover everything."""
        policies = Policies.parse(self.allow, proposal.project, Path.home().resolve())
        answer = await Answers(policies, mode=self.mode).answer(proposal.question)
        return answer.by if answer.consent.is_yes else ""

    def _require_no_files(self, task: BoardTask, papers: Submission) -> None:
        """Raise SandboxError if the submitted files no longer exist and were never applied.

        It is also raised if the evidence is missing, because it is not known then whether there were files. Files
        that the operator has applied by hand (`artoo apply`) count as applied, even if only a part was.
        """
        work = papers.work()
        if (work is not None and not work.digest) or took_effect(self.submissions, task.id):
            return
        gone = "the papers of what it handed in are" if work is None else "what it handed in is"
        raise SandboxError(
            f"task {task.id}: {gone} not there any more, discarded, expired or lost: reject it, and it is done"
            " again"
        )

    async def _carry_out(self, task: BoardTask, papers: Submission, intent: Intent) -> Ruling:
        """Apply the files, and then complete the task. If there are conflicts, the submission is sent back."""
        try:
            conflicts = await asyncio.to_thread(carry_out, self.submissions, task.id, intent)
        except SandboxError:
            await self._given_up(task, papers)
            raise
        if conflicts:
            await self._given_up(task, papers)
            return await self._send_back(task, conflicts)
        try:
            done = await self._complete(task, intent)
        except GovernanceRefused:
            if (await self.board.get(task.id)).state is not BoardState.COMPLETED:
                await asyncio.to_thread(self._take_back, task, papers, intent)
                await self._let_go(task)
            raise
        return Ruling(done, completed=True)

    async def _given_up(self, task: BoardTask, papers: Submission) -> None:
        """Discard the recorded approval after an apply that has changed nothing. Release the right to apply."""
        await asyncio.to_thread(papers.forget_approval)
        await self._let_go(task)

    def _take_back(self, task: BoardTask, papers: Submission, intent: Intent) -> None:
        """Undo an apply because the board no longer completes its task. Discard the recorded approval."""
        if took_effect(self.submissions, task.id, intent.digest):
            undo(self.submissions.home, task.id)
        papers.forget_approval()

    async def _complete(self, task: BoardTask, intent: Intent) -> BoardTask:
        if intent.actor == POLICY:
            return await self.board.reviews.pass_by_policy(task.id, intent.submission)
        return await self.board.reviews.approve(task.id, intent.actor, intent.reason, submission=intent.submission)

    async def _send_back(self, task: BoardTask, conflicts: Sequence[Conflict]) -> Ruling:
        reasons = f"it cannot be applied, and nothing of it was: {_listed(conflicts)}"
        return Ruling(await self.board.reviews.send_back(task.id, task.submission, reasons), why=(reasons,))

    async def _left(self, task: BoardTask, intent: Intent, proposal: Proposal) -> Ruling:
        asked = "; ".join(proposal.asks[:_SHOWN])
        more = f" and {len(proposal.asks) - _SHOWN} more" if len(proposal.asks) > _SHOWN else ""
        who = "the trust policy" if intent.actor == POLICY else intent.actor
        reasons = f"{who} would approve, but only the operator may agree to: {asked}{more}"
        left = await self.board.reviews.leave_to_operator(task.id, task.submission, reasons)
        return Ruling(left, waiting=True, why=proposal.asks, proposal=proposal)

    @asynccontextmanager
    async def _ruling(self, task_id: str, patience: float = PATIENCE_SECONDS) -> AsyncGenerator[None]:
        """Lock a task, as `_alone` does. Convert errors of the file system to SandboxError.

        After such an error, a recorded approval is kept and completed later.
        """
        async with self._alone(task_id, patience):
            with writing(self.submissions.workspace(task_id).base):
                yield

    def _alone(self, task_id: str, patience: float = PATIENCE_SECONDS) -> AbstractAsyncContextManager[None]:
        """Keep all other processes from deciding about a task at the same time. Other tasks are not blocked while a
        user reads this one."""
        return alone(self.submissions.lock(task_id), f"what task {task_id} handed in", patience=patience)


def _listed(conflicts: Sequence[Conflict]) -> str:
    shown = "; ".join(f"{one.path}: {one.reason}" for one in conflicts[:_SHOWN])
    return f"{shown} and {len(conflicts) - _SHOWN} more" if len(conflicts) > _SHOWN else shown
