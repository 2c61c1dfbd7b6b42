"""Settle a workspace at a task's end (ask, then apply, keep pending or delete), or after each turn if live.

change set ─► all silent ───────────────────► applied
           └─► something needs approval ─► ask ─► yes: applied · a part: that part · discard: deleted
                                          └─► no, keep, no one answers ─► pending

With `--apply live`, ordinary changes are also applied at the end of every turn (`settle_live`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.confirmation import PERSON, ConfirmationAnswer, Consent
from artoo.contracts.errors import NotLogged, SandboxError
from artoo.contracts.settling import ApplyMode, Ending, Review, Settled, counts_of
from artoo.ports.confirm import Questions
from artoo.ports.waiting import waiting_for_a_person
from artoo.ports.workspace import Workspace
from artoo.tools.resume.in_flight import Durable, nothing_to_keep
from artoo.tools.settlement.review import question_of, review_of
from artoo.words.settling import rest_by_hand, unfinished
from artoo.workspace.changes.change_set import ChangeSet
from artoo.workspace.directory import Workspaces
from artoo.workspace.settlement.continuing import continued, supersede
from artoo.workspace.settlement.finish import outcomes
from artoo.workspace.settlement.pending import DAY, Keeping
from artoo.workspace.settlement.service import Settlement, Subject, opened

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS = 60.0
"""Number of seconds to wait for another process that reviews the same changes, because a web page may review a
large change set."""


def nothing_went_out() -> tuple[str, ...]:
    """Return an empty tuple, for tasks that send nothing to other machines."""
    return ()


@dataclass(frozen=True, slots=True)
class Settler:
    """Settles the workspace of one task. Implements ports.settling.Settling.

    `request` is the text of the user's request. `mode` decides which changes are applied without approval.
    `went_out` returns descriptions of the data that left the machine. `durable` waits until the task log is
    written, so that a log contains the cause of each effect before the effect happens. `again`: true if the task
    was resumed. `logged`: true if the task has a log. If it has none, a line of the history records the request and
    the applied changes. `before_apply` may refuse an apply by raising SandboxError.
    """

    workspace: Workspace
    artoo_home: Path
    request: str = ""
    mode: ApplyMode = ApplyMode.NEW
    keeping: Keeping = field(default_factory=Keeping)
    went_out: Callable[[], tuple[str, ...]] = nothing_went_out
    durable: Durable = nothing_to_keep
    again: bool = False
    logged: bool = True
    before_apply: Callable[[Sequence[str]], None] | None = None

    async def settle(self, ending: Ending, questions: Questions | None) -> Settled:
        await self.workspace.close()
        directory = Workspaces(self.artoo_home).find(ending.task_id)
        live = await self._reports(ending.task_id, live=True) if self.mode is ApplyMode.LIVE else ()
        before = await self._reports(ending.task_id, live=False) if self.again else ()
        if directory is None:
            settled = self._settled_by_hand(before[-1], ending) if before else Settled(went_out=self.went_out())
            return _with_live(live, settled)
        holding = opened(directory, self.artoo_home, self._subject(ending), patience=_PATIENCE_SECONDS)
        settlement = await asyncio.to_thread(holding.__enter__)
        try:
            if settlement is None:
                return _with_live(live, Settled(went_out=self.went_out()))
            settled = await self._settle(settlement, ending, questions)
        finally:
            await asyncio.to_thread(holding.__exit__, None, None, None)
        return _with_live(live, _with_part(before[-1], settled) if before else settled)

    async def settle_live(self) -> tuple[str, ...]:
        """Apply ordinary changes at the end of a turn if `--apply live` is set; return their printable paths."""
        # Changes that cannot be applied now stay in the workspace until the end of the task.
        if self.mode is not ApplyMode.LIVE:
            return ()
        directory = Workspaces(self.artoo_home).find(self.workspace.task_id)
        if directory is None:
            return ()
        subject = Subject(before_apply=self.before_apply)
        settlement = Settlement(directory, self.artoo_home, subject, live=self.workspace.files)
        try:
            await self.durable()
            return await asyncio.to_thread(lambda: settlement.apply_live(settlement.review()))
        except (NotLogged, SandboxError) as error:
            logger.info("task %s: nothing is applied at this turn: %s", self.workspace.task_id, error)
            return ()

    async def _settle(self, settlement: Settlement, ending: Ending, questions: Questions | None) -> Settled:
        try:
            found = await asyncio.to_thread(settlement.review)
        except SandboxError as error:
            return await asyncio.to_thread(settlement.keep, ChangeSet(), str(error))
        begun = continued(settlement.directory)
        # the result adds nothing to the earlier task, whose changes stay pending
        if begun is not None and found.digest == begun.digest:
            await asyncio.to_thread(settlement.forget)
            return Settled(went_out=self.went_out())
        settled = await self._decided(settlement, ending, found, questions)
        if begun is not None and not ending.may_go_on:
            await asyncio.to_thread(supersede, self.artoo_home, begun.task_id)
        return settled

    async def _decided(
        self, settlement: Settlement, ending: Ending, found: ChangeSet, questions: Questions | None
    ) -> Settled:
        """Apply the change set, keep it pending, or delete it. The mode and the user's answer decide which."""
        if found.empty:
            await asyncio.to_thread(settlement.forget)
            return Settled(went_out=self.went_out())
        if found.silent and self.mode is not ApplyMode.ASK and ending.directive != "abandon":
            return await self._apply(settlement, found, None)
        answer = await self._ask(settlement, ending, found, questions) if questions is not None else None
        if answer is not None and answer.consent.is_yes:
            return await self._apply(settlement, found, answer)
        if answer is not None and answer.consent is Consent.DISCARD:
            await asyncio.to_thread(lambda: settlement.discard(by=answer.by))
            return settlement.report(found, "discarded")
        why = unfinished(ending.language) if ending.directive == "abandon" else ""
        return await asyncio.to_thread(settlement.keep, found, why)

    async def _ask(
        self, settlement: Settlement, ending: Ending, found: ChangeSet, questions: Questions
    ) -> ConfirmationAnswer:
        review = await asyncio.to_thread(self._review, settlement, ending, found)
        with waiting_for_a_person():
            return await questions.ask(question_of(found, review, ending.language))

    def _review(self, settlement: Settlement, ending: Ending, found: ChangeSet) -> Review:
        unfinished = ending.directive == "abandon"
        with settlement.files() as (before, after):
            return review_of(found, ending.task_id, before, after, unfinished=unfinished, went_out=self.went_out())

    async def _apply(self, settlement: Settlement, found: ChangeSet, answer: ConfirmationAnswer | None) -> Settled:
        """Apply the whole change set, or only the paths that the answer names."""
        # Changes that cannot be applied stay pending.
        paths = (answer.paths or None) if answer is not None else None
        by = answer.by if answer is not None else PERSON
        try:
            await self.durable()
            return await asyncio.to_thread(lambda: settlement.apply(found, paths, by=by))
        except (NotLogged, SandboxError) as error:
            return await asyncio.to_thread(settlement.keep, found, str(error))

    def _subject(self, ending: Ending) -> Subject:
        now = time.time()
        return Subject(
            since=now,
            expires_at=now + self.keeping.days * DAY,
            request=self.request,
            language=ending.language,
            went_out=self.went_out(),
            moment="end",
            recorded=not self.logged,
            before_apply=self.before_apply,
        )

    async def _reports(self, task_id: str, *, live: bool) -> tuple[Settled, ...]:
        """Return the reports of earlier applies of this task, either at the ends of its turns or at the end of an
        earlier process."""
        # The history is read, because a process that died right after it applied changes has not logged that.
        return await asyncio.to_thread(outcomes, self.artoo_home, task_id, "live" if live else "end")

    @staticmethod
    def _settled_by_hand(before: Settled, ending: Ending) -> Settled:
        """Report an earlier apply if the workspace no longer exists. A partial apply is reported as complete,
        because the user has settled the other changes by hand."""
        if before.state != "partly":
            return before
        known = {"state": "applied", "conflicts": (), "reason": rest_by_hand(ending.language)}
        return before.model_copy(update=known)


def _with_part(before: Settled, now: Settled) -> Settled:
    """Combine the report of the remaining changes with the part that an earlier process applied."""
    if now.state == "none":
        return before.model_copy(update={"state": "applied", "applied": ()})
    if before.state != "partly":
        return now
    if now.state == "applied":
        rest = tuple(one.path for one in now.changes)
        return now.model_copy(update={"applied": (*before.applied, *(now.applied or rest))})
    state = "partly" if now.waits else now.state
    return now.model_copy(update={"state": state, "applied": (*before.applied, *now.applied)})


def _with_live(live: Sequence[Settled], now: Settled) -> Settled:
    """Combine the report of the task's end with the changes that were applied during the task."""
    if not live:
        return now
    changes = {one.path: one for each in live for one in each.changes}
    if now.state in ("none", "applied"):
        merged = tuple({**changes, **{one.path: one for one in now.changes}}.values())
        applied = () if not now.applied else (*changes, *now.applied)
        known = {"state": "applied", "changes": merged, "counts": counts_of(merged), "applied": applied}
        return now.model_copy(update=known)
    state = "partly" if now.waits else now.state
    return now.model_copy(update={"state": state, "applied": tuple(dict.fromkeys((*changes, *now.applied)))})
