"""Open shared memory at first use, and run the Dreamer in the background of a process."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.base import Contract
from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import DreamReport
from artoo.contracts.roles import Role
from artoo.memory.absent import NoMemory
from artoo.memory.opening import open_memory
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.ports.model import Model, Tier
from artoo.runtime.config.endpoints import endpoint
from artoo.runtime.config.model import Config
from artoo.runtime.task.role_context import TaskMemory
from artoo.store.address import StoreAddress

if TYPE_CHECKING:
    from artoo.loops.slow.dreamer import Dreamer
    from artoo.loops.slow.passing import Draft
    from artoo.memory.service import SharedMemory

NO_TASK = ""
"""The task id of the Dreamer's messages. They do not belong to a task. They are on the stream, but in no task's
log."""

_AFTER = 1.0
"""Number of seconds until the Dreamer is loaded. By then the first task has begun, or has ended if it was quick."""

_log = logging.getLogger(__name__)


def words_rules(config: Config, environ: Mapping[str, str]) -> bool:
    """Return whether the configured brain model may be asked while no user waits for it (see `config.Memory`)."""
    wanted = config.memory.wording
    return wanted == "any" or (wanted == "endpoint" and endpoint(config, "brain", environ) is not None)


@asynccontextmanager
async def wording(
    config: Config, environ: Mapping[str, str], clock: Clock, ids: Ids
) -> AsyncGenerator[tuple[Callable[[Contract], object], Draft | None]]:
    """Yield two functions for a single Dreamer pass outside of an Artoo. One publishes messages, and the other
    words rules."""
    port = InProcessBus(clock, ids).port(Role.DREAMER, NO_TASK)
    if not words_rules(config, environ):
        yield port.publish, None
        return
    from artoo.runtime.app.models import open_models
    from artoo.runtime.task.background_budget import upkeep_model

    model = open_models(config, environ, clock)
    try:
        yield port.publish, _draft(port, upkeep_model(model, config, environ, clock), clock)
    finally:
        await model.close()


class Memories:
    """The shared memory of all tasks of an Artoo.

    `busy`: while it returns true, the Dreamer waits. `model` words rules for the Dreamer. If it is None, no rules
    are made. `home` contains the record of discarded changes. If it is None, this record is not read. If the store
    cannot be opened, this is tried again for the next task.
    """

    def __init__(
        self,
        place: Path | StoreAddress,
        spool: Path,
        bus: InProcessBus,
        clock: Clock,
        ids: Ids,
        *,
        busy: Callable[[], bool],
        model: Model | None,
        home: Path | None = None,
    ) -> None:
        self._place = place
        self._spool = spool
        self._bus = bus
        self._clock = clock
        self._ids = ids
        self._busy = busy
        self._model = model
        self._home = home
        self._opening = asyncio.Lock()
        self._store: SharedMemory | None = None
        self._dreamer: Dreamer | None = None
        self._nudged = False
        self._dreaming: asyncio.Task[None] | None = None

    async def open(self) -> TaskMemory:
        """Return both interfaces of the store. If it cannot be opened, return a NoMemory that contains the reason.
        Never raises."""
        async with self._opening:
            if self._store is None:
                opened = await open_memory(self._place, self._spool, self._clock, self._ids)
                if isinstance(opened, NoMemory):
                    return TaskMemory(opened, opened)
                self._store = opened
                await self._unlearn(opened)
                self._dream_beside(opened)
            return TaskMemory(self._store, self._store)

    async def _unlearn(self, store: SharedMemory) -> None:
        if self._home is None:
            return
        from artoo.runtime.memory.unlearning import unlearn_discarded

        # The error is ignored here, because the next task that opens memory gets it too.
        with suppress(MemoryStoreError):
            await unlearn_discarded(store, self._home, self._clock.now())

    def nudge(self) -> None:
        """Tell the Dreamer that a task has ended."""
        if self._dreamer is not None:
            self._dreamer.nudge()
        else:
            self._nudged = True

    async def dream_briefly(self) -> DreamReport | None:
        """Run a Dreamer pass at the end of a one-shot command, if a pass is due. It asks no model and takes at most
        200 ms."""
        # A shared store is maintained by the Dreamer of a serving machine.
        store = self._store
        if store is None or isinstance(self._place, StoreAddress):
            return None
        from artoo.loops.slow.dreamer import WITHOUT_MODEL
        from artoo.loops.slow.passing import BRIEF

        with suppress(MemoryStoreError):
            await store.flush()
        dreamer = self._made(store, self._bus.port(Role.DREAMER, NO_TASK))
        return await replace(dreamer, draft=None, limits=BRIEF, steps=WITHOUT_MODEL).dream_if_due()

    async def close(self) -> None:
        """Stop the Dreamer, write the queued entries, and close the store. Idempotent."""
        dreaming, self._dreaming = self._dreaming, None
        if dreaming is not None:
            dreaming.cancel()
            await asyncio.wait([dreaming])
        store, self._store = self._store, None
        if store is not None:
            await store.close()

    def _dream_beside(self, store: SharedMemory) -> None:
        port = self._bus.port(Role.DREAMER, NO_TASK)
        # The Dreamer only publishes messages, so its inbox is closed.
        self._bus.close_task(NO_TASK)
        # A task group is not used, because a failing Dreamer must not cancel the task that opened memory.
        self._dreaming = asyncio.create_task(self._dream(store, port), name="dreamer")

    async def _dream(self, store: SharedMemory, port: Port) -> None:
        started = self._clock.now()
        try:
            await self._clock.sleep(_AFTER)
            self._dreamer = dreamer = self._made(store, port)
            if self._nudged:
                dreamer.nudge()
            await dreamer.run()
        except Exception as error:  # noqa: BLE001 - a failure of the Dreamer must stop nothing else
            _log.exception("the Dreamer ended")
            failed = "".join(traceback.format_exception_only(error)).strip()
            port.publish(DreamReport(dream_id=self._ids.new(), started_at=started, finished=False, error=failed))

    def _made(self, store: SharedMemory, port: Port) -> Dreamer:
        from artoo.loops.slow.dreamer import Dreamer

        return Dreamer(
            store.dreams(),
            self._clock,
            self._ids,
            publish=port.publish,
            busy=self._busy,
            draft=_draft(port, self._model, self._clock) if self._model is not None else None,
        )


def _draft(port: Port, model: Model, clock: Clock) -> Draft:
    from artoo.loops.asking import Asker
    from artoo.loops.slow.draft import model_draft

    return model_draft(Asker(port, model, clock, Tier.BRAIN))
