"""Carry out what the user, or a rule, decided about a change set, and report what became of it.

change set ─► apply ─► applied · partly (the rest is pending) · pending (a conflict)
          └─► keep ──► pending
          └─► discard ► discarded
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from artoo.contracts.confirmation import PERSON
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import (
    ChangeClass,
    Settled,
    SettledState,
    counts_of,
    in_order_of_danger,
)
from artoo.words.settling import joined, kept_in_memory, met, why_it_waits
from artoo.workspace.changes.change_set import ChangeSet
from artoo.workspace.settlement.history import LISTED, SettledRecord
from artoo.workspace.settlement.parts import named, ordinary_part, part_of
from artoo.workspace.settlement.pending import PendingRecord
from artoo.workspace.settlement.service import Settlement

logger = logging.getLogger(__name__)

_NOTED = 50
"""Changes that the note of an undo record lists: enough for a report, small enough for every record."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The task whose change set is settled, as records and reports name it.

    `since` and `expires_at`: when it began to be pending and when it may be dropped (seconds since the epoch).
    `recorded`: the history gets a line of what is applied; at the end of a task its log has it already.
    """

    task_id: str
    since: float
    expires_at: float
    request: str = ""
    language: str = "en"
    went_out: tuple[str, ...] = ()
    moment: Literal["end", "later"] = "later"
    recorded: bool = True


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done with the change set of one settlement. Everything here blocks."""

    settlement: Settlement
    subject: Subject

    def apply(self, found: ChangeSet, paths: Collection[str] | None = None, *, by: str = PERSON) -> Settled:
        """Apply everything that is in no conflict, or `paths` (as the user wrote them) with what they need.

        The rest is pending. With a conflict that appears at the last moment nothing is applied, and everything is
        pending. Raises SandboxError when the system refuses, or a path is not in the change set; then nothing
        was applied, and nothing new is pending.
        """
        paths = None if paths is None else named(self.settlement.directory, paths)
        chosen = part_of(found, paths).paths
        done = self.settlement.apply(
            found,
            digest=found.digest,
            paths=paths,
            moment=self.subject.moment,
            outcome=self._outcome(found, chosen) if self.subject.moment == "end" else "",
            told=self._line("applied", by, found, sorted(chosen)) if self.subject.recorded else None,
        )
        if not done.report.applied:
            kept = self.keep(found, met(done.report.conflicts, self.subject.language))
            return kept.model_copy(update={"conflicts": done.report.conflicts})
        if done.whole:
            return self.settled(found, "applied")
        return self._rest(found, chosen)

    def apply_live(self, found: ChangeSet) -> tuple[str, ...]:
        """Apply what is ordinary while the task goes on (`--apply live`), and return its paths.

        Raises SandboxError; then nothing was applied.
        """
        paths = ordinary_part(found)
        if not paths:
            return ()
        outcome = self.settled(_only(found, paths), "applied").model_dump_json()
        done = self.settlement.apply(found, digest=found.digest, paths=paths, moment="live", outcome=outcome)
        return done.report.paths

    def keep(self, found: ChangeSet, *why: str) -> Settled:
        """Leave the change set pending, with a record of everything that somebody needs to settle it later.

        `why` are reasons besides the missing approval.
        """
        record = self._pending(found, *why)
        reason = record.reason
        try:
            self.settlement.keep(record)
        except SandboxError as error:  # no room for the record: the report says what it would have said
            reason = joined(str(error), reason)
        return self.settled(found, "pending").model_copy(update={"reason": reason, "expires_at": record.due})

    def discard(self, *, by: str = PERSON) -> None:
        """Delete everything that the task changed, and record it if the history is to have it."""
        if not self.subject.recorded:
            self.settlement.forget()
            return
        pending = self.settlement.pending
        count = sum(each.count for each in pending.counts) if pending is not None else 0
        line = self._line("discarded", by, ChangeSet(), ()).model_copy(update={"count": count})
        try:
            self.settlement.discard(line)
        except OSError as error:
            logger.warning("task %s is discarded; no room to record it: %s", self.subject.task_id, error)

    def settled(self, found: ChangeSet, state: SettledState, most: int = LISTED) -> Settled:
        """Return the report of a change set, with at most `most` silent changes in it."""
        ordered = in_order_of_danger(found.all_classes)
        loud = [one for one in ordered if one.change_class is not ChangeClass.SILENT]
        silent = [one for one in ordered if one.change_class is ChangeClass.SILENT][:most]
        listed = (*(loud if most >= LISTED else loud[:most]), *silent)
        return Settled(
            state=state,
            counts=counts_of(ordered),
            changes=listed,
            unlisted=len(ordered) - len(listed),
            conflicts=found.all_conflicts,
            went_out=self.subject.went_out,
            digest=found.digest,
        )

    def _line(self, what: str, by: str, found: ChangeSet, paths: Sequence[str]) -> SettledRecord:
        return SettledRecord(
            at=time.time(),
            task_id=self.subject.task_id,
            what=what,
            by=by,
            request=self.subject.request,
            digest=found.digest,
            count=len(paths),
            paths=tuple(paths[:LISTED]),
        )

    def _rest(self, found: ChangeSet, applied: tuple[str, ...]) -> Settled:
        """Report a part that was applied, also if the rest can be neither reviewed nor listed now."""
        try:
            rest, why = self.settlement.review(), ""
        except SandboxError as error:
            rest, why = ChangeSet(), str(error)
        if rest.empty and not why:
            self.settlement.forget()
            return self.settled(found, "applied")
        kept = self.keep(rest, why)
        return kept.model_copy(update={"state": "partly", "applied": applied})

    def _outcome(self, found: ChangeSet, chosen: Sequence[str]) -> str:
        """Return the report that the next life of the task gives if this process dies right after the apply."""
        part = _only(found, chosen)
        if len(part.all_classes) == len(found.all_classes) and not found.all_conflicts:
            return self.settled(found, "applied", most=_NOTED).model_dump_json()
        report = self.settled(part, "partly", most=_NOTED)
        return report.model_copy(update={"applied": tuple(chosen[:LISTED])}).model_dump_json()

    def _pending(self, found: ChangeSet, *why: str) -> PendingRecord:
        """Return the record: that of before, if there is one, so that its deadline and its notice stay."""
        subject = self.subject
        known = self.settlement.pending
        if known is None or known.cut_off:
            known = PendingRecord(task_id=subject.task_id, since=subject.since, expires_at=subject.expires_at)
        lost = kept_in_memory(subject.language) if self.settlement.in_memory else ""
        return known.model_copy(
            update={
                "request": subject.request,
                "language": subject.language,
                "digest": found.digest,
                "counts": counts_of(found.all_classes),
                "reason": why_it_waits(found.all_conflicts, subject.language, *why, lost),
                "conflicts": len(found.all_conflicts),
                "went_out": subject.went_out,
            }
        )


def _only(found: ChangeSet, paths: Collection[str]) -> ChangeSet:
    """Return the change set with the classes of these paths alone, for a report."""
    chosen = frozenset(paths)
    git = replace(found.git, classes=tuple(one for one in found.git.classes if one.path in chosen))
    return replace(found, classes=tuple(one for one in found.classes if one.path in chosen), git=git)
