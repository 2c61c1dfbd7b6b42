"""The workspace of an attempt at a board task, with its start from the last submission, and its hand-in.

    user's files ◄─ approved ── workspace of the board task ◄─ submitted (renamed into place) ── attempt, a copy

A task that was sent back thus continues from its last submission. If an attempt is interrupted and repeated, the
first one leaves nothing behind. If the user has changed the same paths meanwhile, the attempt begins with the
user's files.
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
    """One attempt at a task. `workspace`: the workspace in which the agent works. `standing`: the paths in it that
    earlier submissions have changed.

    `kept`: true if the workspace contains the work of an interrupted run. Only the process that holds the claim
    uses the workspace.
    """

    workspace: Workspace
    standing: tuple[str, ...] = ()
    kept: bool = False


async def begin(
    artoo: Artoo, submissions: Submissions, task: BoardTask, places: RunOptions, exchange: Exchange | None = None
) -> Attempt:
    """Begin an attempt from the last submission, or from the current files if there is none. `places`: the
    directories of the project and of the workspace.

    If another machine made the last submission, it is unpacked here if possible, so that the agent continues it.
    Raises SandboxError, and ConfigurationError if there is no directory to work in.
    """
    if exchange is not None:
        await exchange.take_over(task)
    standing = await asyncio.to_thread(_prepare, submissions, task)
    return Attempt(await artoo.workspace(task.id + ATTEMPT, places), standing)


async def reopened(artoo: Artoo, submissions: Submissions, task: BoardTask, places: RunOptions) -> Attempt:
    """Open an attempt again in the state in which an earlier process left it. Raises the errors of `begin`."""
    kept = await asyncio.to_thread(lambda: submissions.attempt(task.id).exists)
    return Attempt(await artoo.workspace(task.id + ATTEMPT, places), kept=kept)


def _prepare(submissions: Submissions, task: BoardTask) -> tuple[str, ...]:
    """Delete an earlier attempt, copy the last submission, and return the paths that the submission changes.

    If the submission conflicts with the user's files, it is deleted.
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
                # The submission is deleted even if the disk is full and the deletion cannot be recorded.
                with suppress(OSError):
                    discard(submitted, submissions.home, submissions.discarded(task.id, RUNTIME))
                return ()
            copy_workspace(submitted, attempt)
    return tuple(change.path for change in found.all_classes)


def _record_dropped(submissions: Submissions, board_task: str, run: str) -> None:
    """Record that the work of an earlier attempt was deleted, which had not been submitted."""
    # The record only informs the user, so the work continues if the record cannot be written.
    with suppress(OSError):
        note_settled(submissions.home, submissions.discarded(board_task, RUNTIME, run))


async def hand_in(
    attempt: Attempt, submissions: Submissions, work: SubmittedWork, since: float, days: float
) -> None:
    """Make the attempt the submission of the task. May be repeated after a crash. Raises SandboxError.

    The evidence is written first. If it exists and a crash happens, a later process completes the submission.
    """
    papers = submissions.of(work.board_task, work.submission)
    # The evidence is written first, because it shows that the work is done even if this process dies.
    await asyncio.to_thread(papers.keep, work)
    await attempt.workspace.close()
    digest = await asyncio.to_thread(_handed_in, submissions, work.board_task, since, days)
    await asyncio.to_thread(papers.keep, work.model_copy(update={"digest": digest}))


def _handed_in(submissions: Submissions, board_task: str, since: float, days: float) -> str:
    """Rename the attempt to the submission. Return the digest of its changes. Return "" if no files were
    changed."""
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
    """Leaves the changes of a run pending until the review. Implements ports.settling.Settling."""

    workspace: Workspace
    board_task: str

    async def settle(self, ending: Ending, questions: Questions | None) -> Settled:
        """Keep the changes pending. Implements `Settling.settle`. No question is asked here."""
        changes = await self.workspace.changes()
        if not changes:
            return Settled()
        reason = "it is not handed in" if ending.directive == "abandon" else WAITS
        return Settled(state="pending", unlisted=len(changes), reason=reason, kept_under=self.board_task)

    async def settle_live(self) -> tuple[str, ...]:
        """Apply nothing. Implements `Settling.settle_live`. No changes are applied before the review."""
        return ()
