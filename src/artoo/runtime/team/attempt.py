"""One attempt at a task of the board: a fork of the task's view, joined when it is handed in.

    the files ◄─ approved ── view of the board task: what was handed in ◄─ handed in ── fork: this attempt

So a task that was sent back goes on with what it handed in, and of an attempt that was cut off nothing stays that
a second one would do again. What the person has changed meanwhile cannot be gone on with: then the view is new.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace

from artoo.contracts.agents import RUNTIME, BoardTask, SubmittedWork
from artoo.contracts.settling import Ending, Settled, counts_of
from artoo.ports.confirm import Questions
from artoo.ports.world import View
from artoo.runtime.artoo import Artoo
from artoo.runtime.options import RunOptions
from artoo.runtime.team.exchange import Exchange
from artoo.runtime.team.submissions import Submissions, writing
from artoo.world.closing import opened
from artoo.world.pending import DAY, PendingRecord, forget_pending, note_settled
from artoo.world.settle import discard
from artoo.world.view_place import TRUNK, fork_name

WAITS = "it waits for its review"


@dataclass(frozen=True, slots=True)
class Attempt:
    """`view` is where it works, `trunk` what it joins. `standing`: paths that earlier submissions changed there.
    `kept`: the work of an interrupted run is in it.

    Nothing else works in the view as long as the claim on the task holds.
    """

    trunk: View
    view: View
    name: str
    standing: tuple[str, ...] = ()
    kept: bool = False


async def begin(
    artoo: Artoo, submissions: Submissions, task: BoardTask, places: RunOptions, exchange: Exchange | None = None
) -> Attempt:
    """A new attempt, on what was handed in before or on the files as they are now. `places`: where it works.

    What another machine handed in is laid over the files here, where it can be had, and gone on with.

    Raises SandboxError and ConfigurationError when there is no view to work in.
    """
    attempt = await reopened(artoo, submissions, task, places)
    if exchange is not None:
        await exchange.take_over(task, attempt.trunk)
    standing = await asyncio.to_thread(_taken_up, submissions, task)
    await attempt.trunk.drop(attempt.name)
    if attempt.kept and task.run is not None:
        await asyncio.to_thread(_told_dropped, submissions, task, task.run)
    return replace(attempt, view=attempt.trunk.fork(attempt.name), standing=standing, kept=False)


async def reopened(artoo: Artoo, submissions: Submissions, task: BoardTask, places: RunOptions) -> Attempt:
    """The attempt as an earlier process left it. Raises as `begin`."""
    trunk, name = await artoo.view(task.id, places), f"submission {task.submission + 1}"
    layer = fork_name(TRUNK, name)
    known = await asyncio.to_thread(submissions.view(task.id).layer_names)
    kept = any(one == layer or one.startswith(f"{layer}/") for one in known)
    return Attempt(trunk, trunk.fork(name), name, kept=kept)


def _told_dropped(submissions: Submissions, task: BoardTask, run: str) -> None:
    """What an earlier attempt made and never handed in is gone: its log says so from now on."""
    with suppress(OSError):  # a line for people; the work goes on without it
        note_settled(submissions.view(task.id).base.parent, submissions.discarded(task.id, RUNTIME, run))


def _taken_up(submissions: Submissions, task: BoardTask) -> tuple[str, ...]:
    """What stands in the view already. A view that the person's files have left behind is forgotten."""
    submissions.enter(task.id, task.text)
    place = submissions.view(task.id)
    if not place.exists:
        return ()
    with opened(place, submissions.home) as view:
        if not place.exists:
            return ()
        forget_pending(place)
        found = view.difference()
        if found.conflicts:
            with suppress(OSError):  # it is gone all the same; there was no room to say so
                discard(place, submissions.discarded(task.id, RUNTIME))
            return ()
    return tuple(change.path for change in found.changes)


async def hand_in(
    attempt: Attempt, submissions: Submissions, work: SubmittedWork, since: float, days: float
) -> None:
    """Makes the attempt the task's submission. May be repeated after a crash. Raises SandboxError.

    The dossier comes first: where it stands, the handing in is finished, whatever happens to this process.
    """
    papers = submissions.of(work.board_task, work.submission)
    await asyncio.to_thread(papers.keep, work)
    with writing(papers.place):
        await attempt.trunk.join([attempt.name])
        await attempt.trunk.close()
        digest = await asyncio.to_thread(_kept, submissions, work.board_task, since, days)
    await asyncio.to_thread(papers.keep, work.model_copy(update={"digest": digest}))


def _kept(submissions: Submissions, board_task: str, since: float, days: float) -> str:
    """The digest of what is handed in, which is safe on disk then; empty when there are no files."""
    place = submissions.view(board_task)
    if not place.exists:
        return ""
    with opened(place, submissions.home) as view:
        found = view.difference()
        if found.empty:
            return ""
        record = PendingRecord(
            task_id=board_task,
            request=submissions.asked(board_task),
            since=since,
            digest=found.digest,
            counts=counts_of(found.classes),
            reason=f"{WAITS}: artoo task show {board_task}",
            expires_at=since + days * DAY,
        )
        view.keep(record)
    return found.digest


@dataclass(frozen=True, slots=True)
class LeftToReview:
    """Settles the run of an attempt: nothing takes effect before its review. Implements ports.settling.Settling."""

    view: View
    board_task: str

    async def settle(self, ending: Ending, questions: Questions | None) -> Settled:
        """See Settling. Nobody is asked here."""
        changes = await self.view.changes()
        if not changes:
            return Settled()
        reason = "it is not handed in" if ending.directive == "abandon" else WAITS
        return Settled(state="pending", unlisted=len(changes), reason=reason, kept_under=self.board_task)
