"""Settles a task's view when R7 says that the task ends (SPEC section 8): applied, kept for consent, or forgotten.

difference ─► all silent ───────────────► applied
          └─► one needs consent ─► asked ─► yes: applied · a part: that part · discard: forgotten
                                └─► no, keep, nobody there ─► pending
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ValidationError

from artoo.contracts.changes import path_bytes, printable_path
from artoo.contracts.confirmation import PERSON, ConfirmationAnswer, Consent
from artoo.contracts.errors import NotLogged, SandboxError
from artoo.contracts.settling import (
    ApplyMode,
    ChangeClass,
    Ending,
    Settled,
    counts_of,
    in_order_of_danger,
)
from artoo.ports.confirm import Questions
from artoo.ports.waiting import waiting_for_a_person
from artoo.ports.world import View
from artoo.tools.review import question_of, review_of
from artoo.tools.under_way import Durable, nothing_to_keep
from artoo.words.settling import (
    joined,
    kept_in_memory,
    left_twice,
    met,
    rest_by_hand,
    unfinished,
    why_it_waits,
)
from artoo.world.closing import ClosingView, opened
from artoo.world.difference import Difference
from artoo.world.pending import DAY, Keeping, PendingRecord, SettledRecord
from artoo.world.settle import Told, part_of, told_of
from artoo.world.union import RealFiles, Union
from artoo.world.view_place import Views

_LISTED = 1_000
_NOTED = 50
_PATIENCE_SECONDS = 60.0
"""For somebody who looks at the difference just now; a page may, of a large one."""


def nothing_went_out() -> tuple[str, ...]:
    """For tasks that reach nobody."""
    return ()


@dataclass(frozen=True, slots=True)
class Settler:
    """Implements ports.settling.Settling over one task's view. `request` is what the person asked for.

    `mode`: what may take effect unasked. `went_out` tells what left the machine. `durable` waits for the task log,
    so that whatever led to an effect is written down before it. `again`: the task goes on in another process.
    `logged`: there is a log of it; without one a line in `settled.jsonl` tells what was asked and took effect.
    """

    view: View
    artoo_home: Path
    request: str = ""
    mode: ApplyMode = ApplyMode.NEW
    keeping: Keeping = field(default_factory=Keeping)
    went_out: Callable[[], tuple[str, ...]] = nothing_went_out
    durable: Durable = nothing_to_keep
    again: bool = False
    logged: bool = True

    async def settle(self, ending: Ending, questions: Questions | None) -> Settled:
        """See Settling."""
        await self.view.close()
        place = Views(self.artoo_home).find(ending.task_id)
        before = await asyncio.to_thread(self._told_before, ending) if self.again else None
        if place is None:
            return self._by_hand(before, ending) or Settled(went_out=self.went_out())
        holding = opened(place, self.artoo_home, _PATIENCE_SECONDS)
        closing = await asyncio.to_thread(holding.__enter__)
        try:
            settled = await self._settle(closing, ending, questions)
            return settled if before is None else _with(before, settled)
        finally:
            await asyncio.to_thread(holding.__exit__, None, None, None)

    async def _settle(self, closing: ClosingView, ending: Ending, questions: Questions | None) -> Settled:
        why = unfinished(ending.language) if ending.directive == "abandon" else ""
        try:
            if ending.directive != "abandon":
                await asyncio.to_thread(closing.drop_forks)
            elif not ending.may_go_on:
                lost = await asyncio.to_thread(closing.join_forks)
                why = joined(why, left_twice(lost, ending.language) if lost else "")
            found = await asyncio.to_thread(closing.difference)
        except SandboxError as error:
            return await asyncio.to_thread(self._keep, closing, ending, Difference(), str(error))
        if found.empty:
            await asyncio.to_thread(closing.forget)
            return Settled(went_out=self.went_out())
        if found.silent and self.mode is not ApplyMode.ASK and ending.directive != "abandon":
            return await self._apply(closing, ending, found, None)
        answer = await self._asked(closing, ending, found, questions) if questions is not None else None
        if answer is not None and answer.consent.is_yes:
            return await self._apply(closing, ending, found, answer.paths or None)
        if answer is not None and answer.consent is Consent.DISCARD:
            await asyncio.to_thread(closing.place.remove)
            return self._settled(found, "discarded")
        return await asyncio.to_thread(self._keep, closing, ending, found, why)

    async def _asked(
        self, closing: ClosingView, ending: Ending, found: Difference, questions: Questions
    ) -> ConfirmationAnswer:
        review = await asyncio.to_thread(
            review_of,
            found,
            ending.task_id,
            RealFiles(),
            Union(closing.place.strata()),
            unfinished=ending.directive == "abandon",
            went_out=self.went_out(),
        )
        with waiting_for_a_person():
            return await questions.ask(question_of(found, review, ending.language))

    async def _apply(
        self, closing: ClosingView, ending: Ending, found: Difference, paths: Collection[str] | None
    ) -> Settled:
        try:
            await self.durable()
        except NotLogged as error:
            return await asyncio.to_thread(self._keep, closing, ending, found, str(error))
        try:
            paths = None if paths is None else await asyncio.to_thread(closing.named, paths)
            note = self._note(found, paths)
            told = None if self.logged else self._told(closing.place.task_id, found, paths)
            done = await asyncio.to_thread(
                closing.apply, found, digest=found.digest, paths=paths, note=note, told=told
            )
        except SandboxError as error:
            return await asyncio.to_thread(self._keep, closing, ending, found, str(error))
        if not done.report.applied:
            why = met(done.report.conflicts, ending.language)
            kept = await asyncio.to_thread(self._keep, closing, ending, found, why)
            return kept.model_copy(update={"conflicts": done.report.conflicts})
        if done.whole:
            return self._settled(found, "applied")
        return await asyncio.to_thread(self._rest, closing, ending, found, done.report.paths)

    def _rest(self, closing: ClosingView, ending: Ending, found: Difference, applied: tuple[str, ...]) -> Settled:
        """A part is applied, and is told so; the rest waits, if there is one, or none can be told of now."""
        try:
            rest, why = closing.difference(), ""
        except SandboxError as error:
            rest, why = Difference(), str(error)
        if rest.empty and not why:
            closing.forget()
            return self._settled(found, "applied")
        kept = self._keep(closing, ending, rest, why)
        return kept.model_copy(update={"state": "partly", "applied": applied})

    def _keep(self, closing: ClosingView, ending: Ending, found: Difference, why: str) -> Settled:
        """Pending: written down with everything that somebody needs to settle it another day."""
        now = time.time()
        counts = counts_of(found.classes)
        lost = kept_in_memory(ending.language) if closing.in_memory else ""
        reason = why_it_waits(found.conflicts, ending.language, why, lost)
        record = PendingRecord(
            task_id=ending.task_id,
            request=self.request,
            language=ending.language,
            since=now,
            digest=found.digest,
            counts=counts,
            reason=reason,
            conflicts=len(found.conflicts),
            went_out=self.went_out(),
            expires_at=now + self.keeping.days * DAY,
        )
        try:
            closing.keep(record)
        except SandboxError as error:  # no room: the result and the log say what the record would have
            reason = joined(str(error), reason)
        pending = self._settled(found, "pending")
        return pending.model_copy(update={"reason": reason, "expires_at": record.expires_at})

    def _settled(self, found: Difference, state: str, most: int = _LISTED) -> Settled:
        ordered = in_order_of_danger(found.classes)
        loud = [one for one in ordered if one.change_class is not ChangeClass.SILENT]
        if most < _LISTED:
            loud = loud[:most]
        listed = (*loud, *[one for one in ordered if one.change_class is ChangeClass.SILENT][:most])
        return Settled.model_validate(
            {
                "state": state,
                "counts": counts_of(found.classes),
                "changes": listed,
                "unlisted": len(ordered) - len(listed),
                "conflicts": found.conflicts,
                "went_out": self.went_out(),
                "digest": found.digest,
            }
        )

    def _note(self, found: Difference, paths: Collection[str] | None) -> str:
        """What the journal keeps of the act for the life after this one; of a part, that it is one, and which.

        Raises SandboxError for a path that is not in the difference.
        """
        if paths is None:
            return self._settled(found, "applied", most=_NOTED).model_dump_json()
        chosen = {effect.path for effect in part_of(found, paths)}
        classes = tuple(one for one in found.classes if path_bytes(one.path) in chosen)
        rest = len(classes) < len(found.classes) or bool(found.conflicts)
        part = self._settled(replace(found, classes=classes), "partly" if rest else "applied", most=_NOTED)
        applied = tuple(one.path for one in classes[:_LISTED]) if rest else ()
        return part.model_copy(update={"applied": applied}).model_dump_json()

    def _told(self, task_id: str, found: Difference, paths: Collection[str] | None) -> Told:
        """Raises SandboxError for a path that is not in the difference."""
        chosen = found.effects if paths is None else part_of(found, paths)
        line = SettledRecord(
            at=time.time(),
            task_id=task_id,
            what="applied",
            by=PERSON,
            request=self.request,
            digest=found.digest,
            count=len(chosen),
            paths=tuple(printable_path(effect.path) for effect in chosen[:_LISTED]),
        )
        return Told(settled=line)

    def _by_hand(self, before: Settled | None, ending: Ending) -> Settled | None:
        """What to say when the view is gone: of a part that was chosen, that this part was applied, and no more."""
        if before is None or before.state != "partly":
            return before
        known = {"state": "applied", "conflicts": (), "reason": rest_by_hand(ending.language)}
        return before.model_copy(update=known)

    def _told_before(self, ending: Ending) -> Settled | None:
        """What a process that died after it had applied everything, or a part, would have said of that."""
        note = told_of(self.artoo_home, ending.task_id)
        try:
            return None if note is None else Settled.model_validate_json(note)
        except ValidationError:
            return None


def _with(before: Settled, now: Settled) -> Settled:
    """What became of the rest, with the part that a person had chosen and an earlier process had applied."""
    if now.state == "none":
        return before.model_copy(update={"state": "applied", "applied": ()})
    if before.state != "partly":
        return now
    if now.state == "applied":
        rest = tuple(one.path for one in now.changes)
        return now.model_copy(update={"applied": (*before.applied, *(now.applied or rest))})
    state = "partly" if now.waits else now.state
    return now.model_copy(update={"state": state, "applied": (*before.applied, *now.applied)})
