"""Run tasks as streams of messages that a caller reads, and may leave at any time.

The caller may stop reading at any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.bus.inprocess import InProcessBus
from artoo.bus.spool import SpoolingTap
from artoo.contracts.envelope import Envelope

if TYPE_CHECKING:
    from artoo.contracts.solution import FinalResult
    from artoo.runtime.task.start_task import Begun


class Streams:
    """The tasks of one process that are read as streams. If a reader leaves, its task ends and can be resumed."""

    def __init__(self, bus: InProcessBus, home: Path) -> None:
        """Create the object without any task. `home`: artoo's own directory, in which messages are stored that
        exceed the memory limit."""
        self._bus = bus
        self._home = home
        self._playing: set[asyncio.Task[FinalResult]] = set()

    async def messages(
        self, begun: Begun, play: Callable[[Begun], Coroutine[None, None, FinalResult]]
    ) -> AsyncGenerator[Envelope, None]:
        """Yield the earlier messages of a task, then the new ones while `play` runs the task. The last is its
        FinalResult.
        """
        from artoo.contracts.solution import FinalResult

        task_id = begun.task.task_id
        spool = SpoolingTap(self._home / "spool", name=f"stream-{task_id}")

        def tap(envelope: Envelope) -> None:
            if envelope.task_id == task_id:
                spool(envelope)
                if isinstance(envelope.payload, FinalResult):
                    detach()

        detach = self._bus.attach(tap)
        with spool:
            # A task group is not used, because errors in it would be raised inside the code that reads this
            # generator.
            playing = asyncio.create_task(play(begun))
            self._playing.add(playing)
            playing.add_done_callback(lambda _: (detach(), spool.finish()))
            try:
                for earlier in begun.earlier:
                    yield earlier
                async for item in spool:
                    if isinstance(item, Envelope):
                        yield item
                await playing
            finally:
                await self._end(playing)
                spool.forget()
                # The task may never have started, and then nothing else would close it.
                self._bus.close_task(task_id)
                begun.lock.release()

    async def close(self) -> None:
        """End the tasks whose readers have left without closing the generator, for example by `break` in an `async
        for`."""
        for playing in tuple(self._playing):
            await self._end(playing)

    async def _end(self, playing: asyncio.Task[FinalResult]) -> None:
        """Cancel the task and wait for it."""
        # Its error is retrieved and ignored, because no reader is left. If the task is done already, nothing is
        # awaited, because its event loop may be closed.
        if playing.cancel():
            await asyncio.wait([playing])
        self._playing.discard(playing)
        if not playing.cancelled():
            playing.exception()
