"""An approval and its merge, as one: the files first, all or none, then the task is complete (SPEC sections 8, 11).

    look ─ conflict ───────────────────────► sent back by artoo, with the paths
      └─ Law 1 asks, and nobody may say yes ► stays in review, for the operator
      └─ may happen ─ written down ─ merge ─► completed

What was written down (`approval.json`) is finished at the next start when the process dies in between: a merge
repeats without doing anything twice, and the board moves once.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, ValidationError

from artoo.agents.board import MOST_TASKS, Board
from artoo.agents.merges import Merges
from artoo.contracts.agents import OPERATOR, POLICY, BoardState, BoardTask
from artoo.contracts.base import Contract
from artoo.contracts.changes import Conflict
from artoo.contracts.errors import ClaimLost, GovernanceRefused, SandboxError
from artoo.tools.layers.layer import PROJECT, Layer, Layers
from artoo.tools.layers.merge import Proposal, merge, propose
from artoo.tools.policy import Policies
from artoo.world.undo import undo

logger = logging.getLogger(__name__)

_SHOWN = 5


class Intent(Contract):
    """An approval that was given. `digest` binds it to what was seen; `actor` may be the policy."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    actor: str
    reason: str
    submission: int
    digest: str


@dataclass(frozen=True, slots=True)
class Ruling:
    """What became of an approval: `completed`; or `waiting` for the operator; or sent back (neither).

    `why` says what stood in the way, `proposal` what there is to agree to.
    """

    task: BoardTask
    completed: bool = False
    waiting: bool = False
    why: tuple[str, ...] = ()
    proposal: Proposal | None = None


class Approvals:
    """Approves and rejects submissions that may hold files. `allow` are the configured standing permissions."""

    def __init__(self, board: Board, merges: Merges, layers: Layers, allow: Sequence[str]) -> None:
        self._board = board
        self._merges = merges
        self._layers = layers
        self._allow = tuple(allow)
        self._turn = asyncio.Lock()

    async def look(self, task: BoardTask) -> Proposal | None:
        """What the task's latest submission would change; None: it has no files. Raises SandboxError."""
        layer = self._layer(task)
        return None if layer is None else await asyncio.to_thread(propose, layer, self._layers.home)

    async def approve(
        self, task_id: str, actor: str, reason: str, *, submission: int, consent: str | None = None
    ) -> Ruling:
        """Approves as an agent or the operator. `consent`: the digest that the operator has agreed to.

        Raises ActorRefused, MoveRefused and ClaimLost as the board does, SandboxError when the merge fails.
        """
        intent = Intent(actor=actor, reason=reason, submission=submission, digest=consent or "")
        async with self._alone():
            claim = await self._board.reviews.take(task_id, actor)
            if claim.task.submission != submission:
                raise ClaimLost(
                    f"Task {task_id}: what was reviewed is submission {submission}, what waits is"
                    f" {claim.task.submission}; look at that one."
                )
            return await self._rule(claim.task, intent)

    async def pass_by_policy(self, task: BoardTask) -> Ruling:
        """Approves what trust leaves unreviewed, if Law 1 lets it; nothing, when that was decided meanwhile."""
        async with self._alone():
            now = await self._board.get(task.id)
            if now.state is not BoardState.REVIEW or now.submission != task.submission:
                return Ruling(now, completed=now.state is BoardState.COMPLETED)
            intent = Intent(actor=POLICY, reason="", submission=task.submission, digest="")
            return await self._rule(now, intent)

    async def reject(self, task_id: str, actor: str, reasons: str, *, submission: int | None = None) -> BoardTask:
        """Rejects; the files stay in their layer until the task is archived. A cut approval is undone."""
        async with self._alone():
            task = await self._board.get(task_id)
            rejected = await self._board.reviews.reject(task_id, actor, reasons, submission=submission)
            layer = self._layer(task)
            if layer is not None and await asyncio.to_thread(_noted, layer) is not None:
                await asyncio.to_thread(self._take_back, layer)
            return rejected

    async def finish_cut(self) -> tuple[str, ...]:
        """Finishes the approvals in which a process died, and passes what nobody needs to look at; their tasks.

        What cannot be finished now is tried again the next time.
        """
        finished: list[str] = []
        for task in await self._board.list({BoardState.REVIEW}, limit=MOST_TASKS):
            try:
                if await self._finish(task.id):
                    finished.append(task.id)
            except (GovernanceRefused, SandboxError) as error:
                logger.warning("the approval of task %s is not finished yet: %s", task.id, error)
        return tuple(finished)

    async def _finish(self, task_id: str) -> bool:
        async with self._alone():
            task = await self._board.get(task_id)
            if task.state is not BoardState.REVIEW:
                return False
            layer = self._layer(task)
            intent = None if layer is None else await asyncio.to_thread(_noted, layer)
            if layer is not None and intent is not None:
                await self._carry_out(task, layer, intent)
                return True
            if task.reviewer == OPERATOR or not await self._merges.passes(task_id):
                return False
            await self._rule(task, Intent(actor=POLICY, reason="", submission=task.submission, digest=""))
            return True

    def _layer(self, task: BoardTask) -> Layer | None:
        return self._layers.find(task.id, task.submission) if task.submission else None

    async def _rule(self, task: BoardTask, intent: Intent) -> Ruling:
        layer = self._layer(task)
        if layer is None:
            return Ruling(await self._complete(task, intent), completed=True)
        proposal = await asyncio.to_thread(propose, layer, self._layers.home)
        if proposal.conflicts:
            return await self._send_back(task, proposal.conflicts)
        permitted = self._permitted(layer, proposal)
        agreed = intent.actor == OPERATOR and intent.digest == proposal.digest
        if proposal.asks and not permitted and not agreed:
            return await self._left(task, intent, proposal)
        reason = "; ".join(filter(None, (intent.reason, *(f"policy: {line}" for line in permitted))))
        intent = intent.model_copy(update={"reason": reason, "digest": proposal.digest})
        await asyncio.to_thread(_note, layer, intent)
        return await self._carry_out(task, layer, intent)

    def _permitted(self, layer: Layer, proposal: Proposal) -> tuple[str, ...]:
        """The standing permissions that together cover everything that needs a yes."""
        policies = Policies.parse(self._allow, layer.original_of(PROJECT), Path.home().resolve())
        return policies.covering(proposal.acts) if proposal.acts else ()

    async def _carry_out(self, task: BoardTask, layer: Layer, intent: Intent) -> Ruling:
        """The merge, then the move. What cannot be merged any more is sent back.

        After a crash part of it may be done: what is not done yet is as it was approved, or a conflict.
        """
        proposal = await asyncio.to_thread(propose, layer, self._layers.home)
        try:
            report = await asyncio.to_thread(merge, layer, self._layers.home, proposal.digest)
        except SandboxError:
            await asyncio.to_thread(layer.approval.unlink, missing_ok=True)
            raise
        if not report.applied:
            await asyncio.to_thread(layer.approval.unlink, missing_ok=True)
            return await self._send_back(task, report.conflicts)
        try:
            return Ruling(await self._complete(task, intent), completed=True)
        except GovernanceRefused:
            if (await self._board.get(task.id)).state is not BoardState.COMPLETED:
                await asyncio.to_thread(self._take_back, layer)
            raise

    def _take_back(self, layer: Layer) -> None:
        """The board no longer wants it: as if it had not been merged."""
        if any((self._layers.home / "undo").glob(f"{layer.origin.board_task}/*")):
            undo(self._layers.home, layer.origin.board_task)
        layer.approval.unlink(missing_ok=True)

    async def _complete(self, task: BoardTask, intent: Intent) -> BoardTask:
        if intent.actor == POLICY:
            return await self._merges.pass_by_policy(task.id, intent.submission)
        return await self._board.reviews.approve(task.id, intent.actor, intent.reason, submission=intent.submission)

    async def _send_back(self, task: BoardTask, conflicts: Sequence[Conflict]) -> Ruling:
        reasons = f"it cannot be merged, and nothing of it was: {_listed(conflicts)}"
        return Ruling(await self._merges.send_back(task.id, task.submission, reasons), why=(reasons,))

    async def _left(self, task: BoardTask, intent: Intent, proposal: Proposal) -> Ruling:
        asked = "; ".join(proposal.asks[:_SHOWN])
        more = f" and {len(proposal.asks) - _SHOWN} more" if len(proposal.asks) > _SHOWN else ""
        who = "the trust policy" if intent.actor == POLICY else intent.actor
        reasons = f"{who} would approve, but only the operator may agree to: {asked}{more}"
        left = await self._merges.leave_to_operator(task.id, task.submission, reasons)
        return Ruling(left, waiting=True, why=proposal.asks, proposal=proposal)

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """One ruling at a time, over all processes: they are short. A crash releases it."""
        async with self._turn:
            descriptor = await asyncio.to_thread(_locked, self._layers.folder)
            try:
                yield
            finally:
                os.close(descriptor)


def _locked(folder: Path) -> int:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder / ".ruling", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _note(layer: Layer, intent: Intent) -> None:
    """Durable, whole or not there."""
    temporary = layer.approval.with_suffix(".new")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(intent.model_dump_json())
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(layer.approval)


def _noted(layer: Layer) -> Intent | None:
    try:
        return Intent.model_validate_json(layer.approval.read_bytes())
    except (OSError, ValidationError):
        return None


def _listed(conflicts: Sequence[Conflict]) -> str:
    shown = "; ".join(f"{one.path}: {one.reason}" for one in conflicts[:_SHOWN])
    return f"{shown} and {len(conflicts) - _SHOWN} more" if len(conflicts) > _SHOWN else shown
