"""A task that was logged, for the tests of the task log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import StreamClosed
from artoo.contracts.events import ModelCalled
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import Cost, Directive, FinalResult, Loss
from artoo.ports.spool import Gap, Lull
from artoo.redaction import Redactor
from artoo.tasklog.layout import LogLimits
from artoo.tasklog.writer import TaskLog

TASK = "01980000-0000-7000-8000-000000000001"
START = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


class ListedSpool:
    """A spool that holds what the test gives it (implements ports.spool.Spool)."""

    def __init__(self, items: Iterable[Envelope | Gap] = ()) -> None:
        self._items = list(items)
        self._more = asyncio.Event()
        self._finished = False
        self.accepted = sum(item.count if isinstance(item, Gap) else 1 for item in self._items)

    def add(self, item: Envelope | Gap) -> None:
        self._items.append(item)
        self.accepted += item.count if isinstance(item, Gap) else 1
        self._more.set()

    def finish(self) -> None:
        self._finished = True
        self._more.set()

    def hurry(self) -> None:
        """It never waits for the end of a burst."""

    async def wait(self, lull: Lull | None = None) -> None:
        while not self._items:
            if self._finished:
                raise StreamClosed("finished")
            self._more.clear()
            await self._more.wait()

    def take(self, limit: int) -> list[Envelope | Gap]:
        batch, self._items = self._items[:limit], self._items[limit:]
        return batch


def message(payload: Contract, number: int = 0, *, task_id: str = TASK, sender: Role = Role.EXECUTOR) -> Envelope:
    return Envelope(f"id-{number:06d}", sender, task_id, START + timedelta(seconds=number), payload)


def request(text: str = "count the files") -> UserRequest:
    return UserRequest(text=text, project="/project", workspace="/workspace")


def call(answer: str) -> ModelCalled:
    return ModelCalled(
        role=Role.EXECUTOR, contract="ExecutorStep", tier="tool", model="m", system="s", user="u", answer=answer
    )


def final(output: str = "12") -> FinalResult:
    return FinalResult(
        task_id="count_files",
        summary="There are 12 files.",
        output=output,
        loss=Loss(),
        directive=Directive.ACCEPT,
        cost=Cost(llm_calls=2, elapsed_ms=1_500),
    )


def task(task_id: str = TASK, text: str = "count the files") -> list[Envelope]:
    return [
        message(request(text), 0, task_id=task_id, sender=Role.USER),
        message(call("{}"), 1, task_id=task_id),
        message(final(), 2, task_id=task_id, sender=Role.SOLVER),
    ]


async def write(
    home: Path,
    items: Sequence[Envelope | Gap],
    *,
    limits: LogLimits | None = None,
    redactor: Redactor | None = None,
) -> TaskLog:
    """Runs a task log over these items from beginning to end."""
    spool = ListedSpool(items)
    spool.finish()
    log = TaskLog(home, spool, limits=limits, redactor=redactor)
    await log.run()
    return log
