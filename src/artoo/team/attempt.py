"""Make one attempt at a task of the board, in a workspace of its own until it is handed in.

    user's files ◄─ approved ── workspace of the board's task ◄─ handed in (renamed into place) ── attempt, a copy

So a task that was sent back goes on with what it handed in, and nothing stays of an attempt that was interrupted
and is done again. If the user has changed the same paths meanwhile, the attempt begins with the user's files.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from artoo.contracts.agents import RUNTIME, BoardTask, SubmittedWork
from artoo.contracts.settling import Ending, Settled, counts_of
from artoo.ports.confirm import Questions
from artoo.ports.workspace import Workspace
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.app.run_options import RunOptions
from artoo.runtime.changes.find_pending import ATTEMPT
from artoo.runtime.changes.submissions import Submissions, writing
from artoo.workspace.copies import copy_workspace
from artoo.workspace.directory import PATIENCE_SECONDS
from artoo.workspace.settlement.finish import discard
from artoo.workspace.settlement.history import note_settled
from artoo.workspace.settlement.pending import DAY, PendingRecord, forget_pending
from artoo.workspace.settlement.service import opened

if TYPE_CHECKING:
    from artoo.cluster.exchange import Exchange

WAITS = "it waits for its review"


@dataclass(frozen=True, slots=True)
class Attempt:
    """`workspace` is where the agent works. `standing`: paths that earlier submissions changed in it.

    `kept`: the work of an interrupted run is in it. No other process works in it while the claim on the task holds.
    """

    workspace: Workspace
    standing: tuple[str, ...] = ()
    kept: bool = False


async def begin(
    artoo: Artoo, submissions: Submissions, task: BoardTask, places: RunOptions, exchange: Exchange | None = None
) -> Attempt:
    """Start an attempt, on the last submission or on the files as they are now. `places`: where it works.

    Another machine's submission is put over the files here, if possible, and the agent goes on with it.
    Raises SandboxError and ConfigurationError when there is no place to work.
    """
    if exchange is not None:
        await exchange.take_over(task)
    standing = await asyncio.to_thread(_prepare, submissions, task)
    return Attempt(await artoo.workspace(task.id + ATTEMPT, places), standing)


async def reopened(artoo: Artoo, submissions: Submissions, task: BoardTask, places: RunOptions) -> Attempt:
    """Return the attempt as an earlier process left it. Raises as `begin`."""
    kept = await asyncio.to_thread(lambda: submissions.attempt(task.id).exists)
    return Attempt(await artoo.workspace(task.id + ATTEMPT, places), kept=kept)


def _prepare(submissions: Submissions, task: BoardTask) -> tuple[str, ...]:
    """Delete an earlier attempt and copy what was handed in; return the paths that it changes.

    Submitted work that conflicts with the user's files is deleted.
    """
    submissions.enter(task.id, task.text)
    submitted, attempt = submissions.workspace(task.id), submissions.attempt(task.id)
    with writing(attempt.base):
        if attempt.exists:
            with attempt.locked(PATIENCE_SECONDS):
                attempt.remove()
            if task.run is not None:
                _record_dropped(submissions, task.id, task.run)
        if not submitted.exists:
            return ()
        with opened(submitted, submissions.home) as settlement:
            if settlement is None:
                return ()
            forget_pending(submitted)
            found = settlement.review()
            if found.all_conflicts:
                # It is deleted all the same; there was no room to record that.
                with suppress(OSError):
                    discard(submitted, submissions.home, submissions.discarded(task.id, RUNTIME))
                return ()
            copy_workspace(submitted, attempt)
    return tuple(change.path for change in found.all_classes)


def _record_dropped(submissions: Submissions, board_task: str, run: str) -> None:
    """Record that what an earlier attempt made and never handed in is deleted."""
    # A line for the user; the work goes on without it.
    with suppress(OSError):
        note_settled(submissions.home, submissions.discarded(board_task, RUNTIME, run))


async def hand_in(
    attempt: Attempt, submissions: Submissions, work: SubmittedWork, since: float, days: float
) -> None:
    """Make the attempt the task's submission. Idempotent after a crash. Raises SandboxError.

    The dossier is written first: if it is there, handing in is finished, whatever happens to this process.
    """
    papers = submissions.of(work.board_task, work.submission)
    # Written first: where it stands, the work was done, whatever happens to this process.
    await asyncio.to_thread(papers.keep, work)
    await attempt.workspace.close()
    digest = await asyncio.to_thread(_handed_in, submissions, work.board_task, since, days)
    await asyncio.to_thread(papers.keep, work.model_copy(update={"digest": digest}))


def _handed_in(submissions: Submissions, board_task: str, since: float, days: float) -> str:
    """Return the digest of what is handed in, which is safe on disk then; empty when there are no files."""
    submissions.adopt_attempt(board_task)
    submitted = submissions.workspace(board_task)
    if not submitted.exists:
        return ""
    with writing(submitted.base), opened(submitted, submissions.home) as settlement:
        found = settlement.review() if settlement is not None else None
        if settlement is None or found is None or found.empty:
            return ""
        record = PendingRecord(
            task_id=board_task,
            request=submissions.asked(board_task),
            since=since,
            digest=found.digest,
            counts=counts_of(found.all_classes),
            reason=f"{WAITS}: artoo task show {board_task}",
            expires_at=since + days * DAY,
        )
        settlement.keep_record(record)
        return found.digest


@dataclass(frozen=True, slots=True)
class LeftToReview:
    """Settles the run of an attempt: nothing takes effect before its review. Implements ports.settling.Settling."""

    workspace: Workspace
    board_task: str

    async def settle(self, ending: Ending, questions: Questions | None) -> Settled:
        """Implement Settling. No one is asked here."""
        changes = await self.workspace.changes()
        if not changes:
            return Settled()
        reason = "it is not handed in" if ending.directive == "abandon" else WAITS
        return Settled(state="pending", unlisted=len(changes), reason=reason, kept_under=self.board_task)

    async def settle_live(self) -> tuple[str, ...]:
        """Implement Settling. Nothing takes effect before the review."""
        return ()
