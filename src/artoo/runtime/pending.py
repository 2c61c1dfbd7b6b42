"""What waits for a person's consent, after the tasks have ended: `artoo status|diff|apply|discard` and the library.

    waiting(config) ─► Pending ─► diff()      what it would change now, with conflicts
                              ├─► apply()     all of it, or the paths that are named
                              └─► discard()   none of it, and it is gone

Works in any process and after days; each call takes the view for itself and leaves it whole, whenever it is killed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import Conflict, path_bytes, printable_path
from artoo.contracts.confirmation import PERSON
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import (
    ChangeClass,
    ClassCount,
    ClassifiedChange,
    Review,
    Settled,
    counts_of,
    in_order_of_danger,
)
from artoo.tasklog.reader import TaskSummary, summary_of
from artoo.tools.review import content_of, review_of
from artoo.words.outcome import resumable
from artoo.words.settling import joined, met, why_it_waits
from artoo.world.closing import ClosingView, named_paths, opened, require_waiting, settled_already
from artoo.world.difference import Difference
from artoo.world.pending import PendingRecord, SettledRecord
from artoo.world.settle import Told, part_of
from artoo.world.threads import to_its_end
from artoo.world.union import RealFiles, Union
from artoo.world.view_place import ViewPlace, Views

logger = logging.getLogger(__name__)

_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class Versions:
    """One path in two versions, as far as they are small files: what the person has now (`yours`), and what the
    task made of what it found (`task`). None: nothing is there, or it is no such file."""

    path: str
    yours: bytes | None
    task: bytes | None


@dataclass(frozen=True, slots=True)
class Pending:
    """One task's changes that wait. Times are seconds since the epoch (UTC).

    `reason` says why they wait. `cut_off`: the task did not end. `on_board`: it is the team's, and settled by its
    review; cut off, it is not handed in. `stands`: how that task stands on the board, empty where nobody has asked.
    `forsaken`: nobody of the team goes on with it or reviews it, so it is the person's to take or to drop.
    `counts`, and the paths in conflict that these do not hold (`conflicts`), are those of the moment when it began
    to wait; `diff` says how it is now.
    """

    task_id: str
    since: float
    expires_at: float
    request: str = ""
    language: str = "en"
    reason: str = ""
    counts: tuple[ClassCount, ...] = ()
    conflicts: int = 0
    went_out: tuple[str, ...] = ()
    warned: bool = False
    cut_off: bool = False
    on_board: bool = False
    stands: str = ""
    forsaken: bool = False
    _home: Path = field(default=Path(), repr=False)

    @property
    def resumable(self) -> bool:
        """Whether a cut-off task can go on: it is to be resumed or discarded. A command by itself has no log to go
        on from, and what is whole of it is settled as anything else."""
        return self.cut_off and bool(self.request) and not self.on_board

    @property
    def only_conflicts(self) -> bool:
        """Whether nothing of it could be applied: the person has changed all that is left."""
        return self.conflicts > 0 and not self.counts

    async def diff(self) -> Review:
        """All that it would change against the files as they are now, most dangerous first, and the conflicts.

        Of a task that was cut off also what its subtasks had done till then.

        Raises SandboxError when another process holds it, or it is settled already, be it while this waited.
        """
        return await asyncio.to_thread(self._diff)

    async def versions(self, path: str) -> Versions:
        """A path in conflict, or any other of the difference, as the person and as the task has it."""
        return await asyncio.to_thread(self._versions, path)

    async def apply(
        self,
        paths: Collection[str] | None = None,
        *,
        digest: str | None = None,
        rest: bool = False,
        by: str = PERSON,
    ) -> Settled:
        """Applies all of it, or only `paths` (printable; a directory stands for all in it). Relative ones start in
        the task's project.

        `by` goes on record: who says so (a person, or a person through a program).

        `digest`: apply only what was shown (`Review` and `digest()` tell it); another difference is refused. With
        conflicts nothing is applied unless paths are named or `rest` is set: all that is not in conflict. The state
        of what is returned is `applied`, `partly` (the rest still waits) or `pending` (with `reason` and
        `conflicts`: nothing was applied). Raises SandboxError as `diff`, when the system refuses (nothing is
        applied then), for a path that is not part of it or none, and of a task that can be resumed.
        """
        return await to_its_end(lambda _: self._apply(paths, digest, rest, by))

    async def discard(self, *, by: str = PERSON) -> Settled:
        """Forgets it: every byte stays as it was. What went out does not come back. Raises SandboxError."""
        return await to_its_end(lambda _: self._discard(by))

    async def named(self, paths: Collection[str]) -> tuple[str, ...]:
        """Paths as `diff` names them; relative ones start in the task's project. Raises SandboxError for an empty
        one, for the root, and where there is none."""
        return await asyncio.to_thread(lambda: named_paths(self._place(), paths))

    async def digest(self) -> str:
        """That of the difference as it is now."""
        return await asyncio.to_thread(self._digest)

    # --- blocking -----------------------------------------------------------------------------------------------

    def _place(self) -> ViewPlace:
        place = Views(self._home).find(self.task_id)
        if place is None:
            raise settled_already(self.task_id)
        return place

    @contextmanager
    def _held(self) -> Generator[ClosingView]:
        """The view to oneself, and it is still there: whoever had it before may have settled all of it."""
        with opened(self._place(), self._home) as closing:
            require_waiting(closing.place)
            yield closing

    @contextmanager
    def _opened(self) -> Generator[ClosingView]:
        """With all that the task did, where it has ended for good and its end could not join that."""
        with self._held() as closing:
            if closing.forks and has_ended(summary_of(self._home, self.task_id)):
                closing.join_forks()
            yield closing

    def _diff(self) -> Review:
        with self._opened() as closing:
            after = Union(closing.place.strata())
            found = closing.difference()
            review = review_of(found, self.task_id, RealFiles(), after, went_out=self.went_out)
            return self._with_parts(closing, review) if self.cut_off and closing.forks else review

    def _with_parts(self, closing: ClosingView, review: Review) -> Review:
        """With what subtasks had done when the task was cut off, against the task's own view: only a look, for the
        task may go on in these parts."""
        place, changes, conflicts = closing.place, review.changes, review.conflicts
        before = Union(place.strata())
        for layer in closing.forks:
            found, after = closing.changes_of(layer), Union(place.strata(layer))
            part = review_of(found, self.task_id, before, after)
            changes, conflicts = changes + part.changes, conflicts + part.conflicts
        ordered = in_order_of_danger(changes)
        whole = {"changes": ordered, "counts": counts_of(ordered), "conflicts": conflicts}
        return review.model_copy(update=whole)

    def _digest(self) -> str:
        with self._opened() as closing:
            self._join_what_was_forsaken(closing)
            return closing.difference().digest

    def _join_what_was_forsaken(self, closing: ClosingView) -> None:
        """What an attempt of the team's had made that nobody goes on with; only for who takes it: a look leaves it
        to be dropped when the task is tried again."""
        if self.forsaken and closing.forks:
            closing.join_forks()

    def _versions(self, path: str) -> Versions:
        with self._opened() as closing:
            after = Union(closing.place.strata())
            return Versions(path, content_of(RealFiles(), path), content_of(after, path))

    def _apply(self, paths: Collection[str] | None, digest: str | None, rest: bool, by: str) -> Settled:
        if self.cut_off and self.on_board and not self.forsaken:
            raise SandboxError(
                f"task {self.task_id} is the team's, and it was not handed in: artoo serve goes on with it,"
                f" artoo task show {self.task_id} says how it stands"
            )
        if self.resumable:
            raise SandboxError(
                f"task {self.task_id} was cut off in the middle: artoo resume {self.task_id} goes on with it,"
                f" artoo discard {self.task_id} drops what it did"
            )
        with self._opened() as closing:
            self._join_what_was_forsaken(closing)
            paths = None if paths is None else closing.named(paths)
            found = closing.difference()
            if digest is not None and digest != found.digest:
                raise SandboxError("it is not any more what was shown: look at it again (artoo diff)")
            if found.empty:
                closing.forget()
                return self._settled(found, "applied")
            if found.conflicts and (not found.effects or (paths is None and not rest)):
                return self._refused(found, found.conflicts)
            if named := tuple(one for one in found.conflicts if one.path in (paths or ())):
                return self._refused(found, named)
            told = self._told(closing, found, paths, by)
            done = closing.apply(found, digest=found.digest, paths=paths, told=told)
            if not done.report.applied:
                return self._refused(found, done.report.conflicts)
            if done.whole:
                return self._settled(found, "applied")
            return self._rest(closing, found, done.report.paths)

    def _told(self, closing: ClosingView, found: Difference, paths: Collection[str] | None, by: str) -> Told:
        """What is known of the act even if this process dies right after it. `_rest` looks at the rest again."""
        chosen = {effect.path for effect in (found.effects if paths is None else part_of(found, paths))}
        left = tuple(one for one in found.classes if path_bytes(one.path) not in chosen)
        settled = self._line("applied", found.digest, tuple(sorted(map(printable_path, chosen))), by)
        if not left and not found.conflicts:
            return Told(settled=settled)
        return Told(settled=settled, rest=self._waits(closing, "", counts_of(left), found.conflicts))

    def _waits(
        self, closing: ClosingView, digest: str, counts: tuple[ClassCount, ...], conflicts: tuple[Conflict, ...]
    ) -> PendingRecord:
        """How the rest waits after a part was applied."""
        reason = why_it_waits(conflicts, self.language)
        known = closing.pending or self._record()
        left = {"digest": digest, "counts": counts, "reason": reason, "conflicts": len(conflicts)}
        return known.model_copy(update=left)

    def _rest(self, closing: ClosingView, found: Difference, applied: tuple[str, ...]) -> Settled:
        """A part is applied, and is told so, also where the rest can be neither looked at nor listed now."""
        rest, reason, until = Difference(), "", self.expires_at
        try:
            rest = closing.difference()
            if rest.empty:
                closing.forget()
                return self._settled(found, "applied")
            record = self._waits(closing, rest.digest, counts_of(rest.classes), rest.conflicts)
            reason, until = record.reason, record.due
            closing.keep(record)
        except SandboxError as error:
            reason = joined(str(error), reason)
        known = {"applied": applied, "reason": reason, "expires_at": until}
        return self._settled(rest, "partly").model_copy(update=known)

    def _discard(self, by: str) -> Settled:
        with self._held() as closing:
            try:
                closing.discard(self._line("discarded", "", (), by))
            except OSError as error:
                logger.warning("the changes of task %s are discarded; no room to note it: %s", self.task_id, error)
        return Settled(state="discarded", counts=self.counts, went_out=self.went_out)

    def _refused(self, found: Difference, conflicts: tuple[Conflict, ...]) -> Settled:
        reason = met(conflicts, self.language)
        settled = self._settled(found, "pending")
        return settled.model_copy(update={"conflicts": conflicts, "reason": reason, "expires_at": self.expires_at})

    def _settled(self, found: Difference, state: str) -> Settled:
        ordered = in_order_of_danger(found.classes)
        return Settled.model_validate(
            {
                "state": state,
                "counts": counts_of(found.classes),
                "changes": _listed(ordered),
                "unlisted": len(ordered) - len(_listed(ordered)),
                "conflicts": found.conflicts,
                "went_out": self.went_out,
                "digest": found.digest,
            }
        )

    def _line(self, what: str, digest: str, paths: tuple[str, ...], by: str) -> SettledRecord:
        """Who settled what: the task's own log has ended."""
        return SettledRecord(
            at=time.time(),
            task_id=self.task_id,
            what=what,
            by=by,
            request=self.request,
            digest=digest,
            count=len(paths) or sum(each.count for each in self.counts),
            paths=paths[:_LISTED],
        )

    def _record(self) -> PendingRecord:
        return PendingRecord(
            task_id=self.task_id, request=self.request, since=self.since, expires_at=self.expires_at
        )


def _listed(ordered: tuple[ClassifiedChange, ...]) -> tuple[ClassifiedChange, ...]:
    loud = [one for one in ordered if one.change_class is not ChangeClass.SILENT]
    return (*loud, *[one for one in ordered if one.change_class is ChangeClass.SILENT][:_LISTED])


def has_ended(told: TaskSummary | None) -> bool:
    """Whether its log says that it came to an end from which it does not go on."""
    return told is not None and told.result is not None and not resumable(told.result)
