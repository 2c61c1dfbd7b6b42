"""What the first page shows beside this home's own tasks: what of the team waits and, where a store is shared, the
tasks of other machines; and their logs, when somebody looks at one.

A store is asked in a thread, at most every ten seconds, and waited for half a second: what comes later is on the
next page, and a server that ends waits for none. A store that is away leaves what was known. A home's own books are
read for every page.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.contracts.errors import ArtooError, ConfigurationError
from artoo.runtime.config.model import Config
from artoo.tasklog.layout import part_path, task_directory
from artoo.tools.core.to_thread import in_thread
from artoo.web.waiting import Waiting, waiting_for_operator

if TYPE_CHECKING:
    from artoo.runtime.cluster.remote_logs import Elsewhere

logger = logging.getLogger(__name__)

EVERY_SECONDS = 10.0
WAITED_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Shared:
    """The latest tasks of the other machines, and what waits for the operator, as far as that is known yet."""

    tasks: tuple[Elsewhere, ...] = ()
    team: Waiting = field(default_factory=Waiting)


@dataclass(slots=True)
class Others:
    """One for each page."""

    _known: Shared = field(default_factory=Shared)
    _looked_at: float = float("-inf")
    _looking: asyncio.Task[Shared] | None = None

    async def seen(self, config: Config, limit: int) -> Shared:
        """What is known now. `limit`: of the tasks."""
        if config.store is None:
            return Shared(team=await waiting_for_operator(config))
        if self._looking is None and time.monotonic() - self._looked_at >= EVERY_SECONDS:
            self._looked_at = time.monotonic()
            self._looking = asyncio.create_task(in_thread(_look, config, limit, self._known))
        if self._looking is not None:
            await asyncio.wait((self._looking,), timeout=WAITED_SECONDS)
            self._take()
        return self._known

    def _take(self) -> None:
        looking = self._looking
        if looking is None or not looking.done():
            return
        self._looking = None
        try:
            self._known = looking.result()
        except (ArtooError, OSError) as error:
            logger.warning("what the store has is not shown: %s", error)


def _look(config: Config, limit: int, known: Shared) -> Shared:
    from artoo.runtime.cluster.remote_logs import list_elsewhere  # only where a store is shared
    from artoo.store.address import parse

    if config.store is None:
        return Shared()
    try:
        tasks = list_elsewhere(config.home, parse(config.store), limit)
    except ArtooError as error:
        return Shared(known.tasks, Waiting(why=str(error)))
    return Shared(tuple(tasks), asyncio.run(waiting_for_operator(config)))


def copied(home: Path, task_id: str) -> Path | None:
    """Where a copy of another machine's log is; None: there is none yet. Blocks."""
    from artoo.runtime.cluster.remote_logs import FOLDER

    machines = home / FOLDER
    places = (task_directory(each, task_id) for each in sorted(machines.iterdir())) if machines.is_dir() else ()
    return next((place for place in places if part_path(place, 0).exists()), None)


def fetch(config: Config, task_id: str) -> None:
    """Brings the copy up to what the store has, if it has the task. Blocks."""
    from artoo.runtime.cluster.remote_logs import find_log_elsewhere
    from artoo.store.address import parse

    if config.store is None:
        return
    try:
        find_log_elsewhere(config.home, parse(config.store), task_id)
    except ConfigurationError as error:
        logger.info("no log of task %s: %s", task_id, error)
