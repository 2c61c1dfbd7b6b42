"""Send this home's submitted change sets to the store, and review and apply those of other machines.

While a change set of another machine is reviewed, it is unpacked into a workspace over the files of this machine.

    workspace of the board task ── packed ──► store ── unpacked ──► a workspace here, as if the task had worked here
    on the machine that made it                     reviewed, applied and undone as any other; deleted afterwards
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from artoo.agents.board.board import MOST_TASKS, Board
from artoo.cluster.change_bundle import StaysHere, pack, unpack
from artoo.cluster.submission_bundles import Differences, Kept
from artoo.contracts.agents import BoardState, BoardTask, SubmittedWork
from artoo.contracts.errors import ActivityStoreError, ConfigurationError, GovernanceRefused, SandboxError
from artoo.contracts.settling import Review
from artoo.ports.sandbox import Roots
from artoo.runtime.changes.submissions import Submissions, writing
from artoo.runtime.cluster.project_names import Projects
from artoo.sandbox.backends.select import open_backend
from artoo.store.address import StoreAddress
from artoo.tools.settlement.review import review_of
from artoo.workspace.directory import PATIENCE_SECONDS
from artoo.workspace.settlement.service import opened as opened_workspace

logger = logging.getLogger(__name__)

LONGEST_REVIEW = 2_000_000
"""Maximum number of characters of a review that is sent with a change set. A longer review is shown only on its own
machine."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Exchanges the change sets of one home with other machines. `_machine`: this machine's name. `_workspace`: its
    output folder."""

    _board: Board
    differences: Differences
    _submissions: Submissions
    _projects: Projects
    _workspace: Path
    _machine: str
    _address: StoreAddress

    def is_elsewhere(self, task: BoardTask) -> bool:
        """Return whether the latest submission was made on another machine."""
        return task.made_on not in ("", self._machine)

    async def kept(self, task: BoardTask) -> Kept | None:
        """Return the store's record of the latest submission of a task."""
        return await self.differences.of(task.id, task.submission)

    async def work(self, task: BoardTask) -> SubmittedWork | None:
        """Return the evidence of a task's latest submission, whichever machine made it. Return None if it is
        missing or cannot be read."""
        if not self.is_elsewhere(task):
            return await asyncio.to_thread(self._submissions.of(task.id, task.submission).work)
        kept = await self.kept(task)
        with suppress(ValidationError):
            return None if kept is None else SubmittedWork.model_validate_json(kept.dossier)
        return None

    async def review(self, task: BoardTask) -> Review | None:
        """Return the review of a submission as its own machine made it. Return None if it is missing or cannot be
        read."""
        kept = await self.kept(task)
        with suppress(ValidationError):
            return None if kept is None else Review.model_validate_json(kept.review)
        return None

    # --- to the store -------------------------------------------------------------------------------------------

    async def send(self, task: BoardTask) -> None:
        """Send a submission of this machine to the store. If it cannot leave this machine, send the reason.

        A submission is sent only once. Raises ActivityStoreError (a later call then sends it). Raises SandboxError
        if the workspace cannot be read now.
        """
        if task.state is not BoardState.REVIEW or task.made_on != self._machine:
            return
        kept = await self.kept(task)
        # The upkeep calls this function every minute for all submissions that are pending.
        if kept is not None and (kept.whole or kept.stays):
            return
        work = await asyncio.to_thread(self._submissions.of(task.id, task.submission).work)
        if work is None or not work.digest:
            await self._announce(task, work, "", "", None)
            return
        with writing(self._submissions.folder), tempfile.TemporaryFile(dir=self._submissions.folder) as parcel:
            try:
                review = await asyncio.to_thread(self._packed, task.id, parcel)
            except StaysHere as error:
                await self._announce(task, work, str(error), "", None)
                return
            await self._announce(task, work, "", review, parcel)

    async def _announce(
        self, task: BoardTask, work: SubmittedWork | None, stays: str, review: str, parcel: BinaryIO | None
    ) -> None:
        # The database driver is installed only with an optional extra.
        from artoo.store.parcels import sha256_of

        size, sha256 = (0, "") if parcel is None else await asyncio.to_thread(sha256_of, parcel)
        dossier = "" if work is None else work.model_dump_json()
        wanted = await self.differences.announce(
            task.id, task.submission, stays=stays, size=size, sha256=sha256, dossier=dossier, review=review
        )
        if not wanted or stays:
            return
        if parcel is not None:
            await asyncio.to_thread(self._send, task, parcel)
        await self.differences.whole(task.id, task.submission, sha256)

    def _packed(self, task_id: str, parcel: BinaryIO) -> str:
        """Pack the changes of the workspace into `parcel`. Return their review as JSON. Raises StaysHere,
        SandboxError."""
        directory = self._submissions.workspace(task_id)
        gone = "its files are not there any more: they were applied, discarded or have expired"
        if not directory.exists:
            raise StaysHere(gone)
        with writing(directory.base), opened_workspace(directory, self._submissions.home) as settlement:
            if settlement is None:
                raise StaysHere(gone)
            found = settlement.review()
            pack(settlement, found, parcel)
            with settlement.files() as (before, after):
                review = review_of(found, task_id, before, after).model_dump_json()
        return review if len(review) <= LONGEST_REVIEW else ""

    def _send(self, task: BoardTask, parcel: BinaryIO) -> None:
        from artoo.store.opened import opened
        from artoo.store.parcels import send

        with opened(self._address, "write to", ActivityStoreError) as connection:
            send(connection, task.id, task.submission, parcel)

    # --- from the store -----------------------------------------------------------------------------------------

    @asynccontextmanager
    async def at_hand(self, task: BoardTask) -> AsyncGenerator[None]:
        """Unpack the submission of another machine into a workspace here, while the context is open.

        Raises ActivityStoreError. Raises SandboxError if it does not fit the files here, or if this machine does
        not have the project.
        """
        if not self.is_elsewhere(task):
            yield
            return
        await self._bring(task)
        try:
            yield
        finally:
            await asyncio.to_thread(self._put_away, task.id, task.submission)

    async def _bring(self, task: BoardTask) -> None:
        kept = await self.kept(task)
        if kept is None or not (kept.whole or kept.stays):
            raise SandboxError(
                f"Task {task.id}: its files are on {task.made_on} and not in the store yet; that machine sends them"
                " when it works (artoo serve). It can be rejected from anywhere."
            )
        if kept.stays:
            raise SandboxError(
                f"Task {task.id}: its files stay on {kept.machine}: {kept.stays}. Look at it and approve it there;"
                " it can be rejected from anywhere."
            )
        work = await self.work(task)
        if work is not None:
            await asyncio.to_thread(self._submissions.of(task.id, task.submission).keep, work)
        if kept.size:
            await asyncio.to_thread(self._lay_to_look, task, kept)
        else:
            await asyncio.to_thread(self._forget_earlier, task)

    async def take_over(self, task: BoardTask) -> None:
        """Replace the workspace of a task by the submission of another machine, so that an agent can continue it
        here.

        If the submission is not available, the workspace is deleted and the work starts again. Raises
        ActivityStoreError.
        """
        if not self.is_elsewhere(task):
            return
        kept = await self.kept(task)
        if kept is not None and kept.is_here and kept.size:
            try:
                await asyncio.to_thread(self._lay_to_go_on, task, kept)
            except SandboxError as error:
                logger.info("task %s begins again, without what was handed in elsewhere: %s", task.id, error)
            else:
                return
        await asyncio.to_thread(self._forget_earlier, task)

    def _lay_to_look(self, task: BoardTask, kept: Kept) -> None:
        roots = self._roots(task)
        self._lay(task, kept, roots, _covered(roots), to_look=True)

    def _lay_to_go_on(self, task: BoardTask, kept: Kept) -> None:
        roots = self._roots(task)
        backend = asyncio.run(open_backend(self._submissions.home))
        if not backend.has_overlay:
            raise SandboxError("no overlay can be mounted here")
        self._lay(task, kept, roots, backend.roots_to_cover(roots), to_look=False)

    def _lay(self, task: BoardTask, kept: Kept, roots: Roots, covered: tuple[Path, ...], *, to_look: bool) -> None:
        from artoo.store.opened import opened
        from artoo.store.parcels import receive

        directory = self._submissions.workspace(task.id)
        self._submissions.enter(task.id, task.text)
        with writing(directory.base), tempfile.TemporaryFile(dir=self._submissions.folder) as parcel:
            with opened(self._address, "read", ActivityStoreError) as connection:
                receive(connection, task.id, task.submission, kept.sha256, parcel)
            if directory.exists:
                # When the workspace is opened, an interrupted apply is finished first.
                with opened_workspace(directory, self._submissions.home):
                    pass
            with directory.locked(PATIENCE_SECONDS):
                unpack(parcel, directory, roots, covered, to_look=to_look)

    def _forget_earlier(self, task: BoardTask) -> None:
        """Delete an earlier submission of this machine, because it is no part of the pending submission."""
        directory = self._submissions.workspace(task.id)
        if directory.exists:
            with writing(directory.base), directory.locked(PATIENCE_SECONDS):
                directory.remove()

    def _roots(self, task: BoardTask) -> Roots:
        workspace = Path(os.path.realpath(self._workspace.expanduser()))
        with writing(workspace):
            workspace.mkdir(parents=True, exist_ok=True)
        try:
            project = self._projects.place(task.project) if task.project else workspace
        except ConfigurationError as error:
            raise SandboxError(f"Task {task.id} cannot be laid over files here: {error}") from error
        return Roots(Path(os.path.realpath(Path.home())), workspace, project)

    def _put_away(self, task_id: str, submission: int) -> None:
        """Delete a workspace that was unpacked only for a review. It is kept if an interrupted approval still needs
        it."""
        directory = self._submissions.workspace(task_id)
        if not directory.is_brought or self._submissions.of(task_id, submission).noted() is not None:
            return
        with suppress(SandboxError), writing(directory.base), directory.locked(PATIENCE_SECONDS):
            if directory.is_brought:
                directory.remove()

    # --- upkeep -------------------------------------------------------------------------------------------------

    async def keep_up(self) -> None:
        """Send the pending submissions. Forget those whose files no longer exist. Delete those that other machines
        have applied.

        Raises ActivityStoreError.
        """
        waiting = await self._board.list({BoardState.REVIEW}, limit=MOST_TASKS)
        for task in waiting:
            try:
                await self.send(task)
            except SandboxError as error:
                logger.warning("the files of task %s are not in the store yet: %s", task.id, error)
        mine = {task.id: task for task in waiting if task.made_on == self._machine}
        for kept in await self.differences.of_machine(self._machine):
            task = mine.get(kept.task)
            if task is None or task.submission != kept.submission or not (kept.is_here and kept.size):
                continue
            if kept.applying in ("", self._machine) and not await asyncio.to_thread(self._is_there, kept.task):
                await self.differences.forget(kept.task, kept.submission)
        for task_id in await asyncio.to_thread(self._submissions.listed):
            with suppress(GovernanceRefused, SandboxError):
                await self._drop_stale(await self._board.get(task_id))

    def _is_there(self, task_id: str) -> bool:
        return self._submissions.workspace(task_id).exists

    async def _drop_stale(self, task: BoardTask) -> None:
        """Delete a local submission if one of another machine has replaced it, or if its task is already
        completed."""
        settled = task.state in (BoardState.COMPLETED, BoardState.ARCHIVED)
        if settled or (task.state is BoardState.REVIEW and self.is_elsewhere(task)):
            await asyncio.to_thread(self._drop, task)

    def _drop(self, task: BoardTask) -> None:
        directory = self._submissions.workspace(task.id)
        if not directory.exists or self._submissions.of(task.id, task.submission).noted() is not None:
            return
        with writing(directory.base), directory.locked():
            directory.remove()


def _covered(roots: Roots) -> tuple[Path, ...]:
    """Return the project and the workspace. If one of them contains the other, return only the outer one."""
    places = sorted({roots.project, roots.workspace}, key=lambda place: len(place.parts))
    return tuple(
        place for place in places if not any(place != other and place.is_relative_to(other) for other in places)
    )
