"""Follow a foreign agent's task through the board at intervals, and clean up after it.

Another process may be working on the task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from dataclasses import dataclass

from artoo.agents.foreign.foreign_tasks import ForeignTask
from artoo.contracts.agents import BoardState
from artoo.contracts.errors import ActivityStoreError
from artoo.protocols.a2a.states import StatusUpdate, Update, rests, statuses, updates, waiting
from artoo.redaction import Redactor
from artoo.runtime.app.exception_groups import plain
from artoo.team.office import Office

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""Number of seconds between two reads of the board, if no notification of a write arrives."""

Look = Callable[[], Awaitable[ForeignTask | None]]


@dataclass(frozen=True, slots=True)
class Following:
    """Follows the tasks of foreign agents on the board. `clean` redacts secrets in results."""

    office: Office
    clean: Redactor

    async def settled(self, seen: ForeignTask, look: Look) -> ForeignTask:
        """Wait until the task has ended, or until only the operator can continue it."""
        async with self.office.wake.watching() as following:
            now = seen
            while not rests(now):
                await following(LOOK_SECONDS)
                now = await look() or now
            return now

    async def events(self, seen: ForeignTask, look: Look) -> AsyncGenerator[Update]:
        """Yield all updates after `seen` in order, until the task rests (see `rests`)."""
        known, waited, now = len(statuses(seen)), seen.waits, seen
        async with self.office.wake.watching() as following:
            while True:
                for update in updates(now, known, await self.result(now)):
                    yield update
                known = len(statuses(now))
                status = None if waited else waiting(now)
                if status is not None:
                    yield StatusUpdate(task_id=now.task.id, context_id=now.context, status=status)
                if status is not None or now.ended is not None:
                    return
                waited = now.waits
                await following(LOOK_SECONDS)
                now = await look() or now

    async def result(self, seen: ForeignTask) -> tuple[str, ...]:
        """Return the texts of the result if the task is completed, which means approved. Otherwise return no
        text."""
        ended = seen.ended
        if ended is None or ended.after is not BoardState.COMPLETED:
            return ()
        papers = self.office.submissions.of(seen.task.id, seen.task.submission)
        work = await asyncio.to_thread(papers.work)
        output = work.output if work is not None else ""
        texts = dict.fromkeys(text for text in (seen.task.summary, output) if text.strip())
        return tuple(map(self.clean.text, texts))


async def again(work: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run `work` for ever. After an error of the database, start it again."""
    while True:
        try:
            await work()
        except* ActivityStoreError as errors:
            logger.warning("the board cannot be used, and is tried again in a moment: %s", plain(errors))
        await asyncio.sleep(LOOK_SECONDS)
