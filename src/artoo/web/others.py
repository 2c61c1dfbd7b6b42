"""Cache tasks of other machines for the first page, refreshed every ten seconds.

The team's work that needs the operator is read here too.

A shared store is read in a thread, at most every ten seconds, and the page waits half a second for it. A later
answer is shown on the next page. A server that ends does not wait for the thread. If a store cannot be reached, the
last known state is shown. A home's own database is read for every page.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.agents.board.operator_todo import Left, left_to_operator
from artoo.agents.storage.database import database_path
from artoo.contracts.agents import OPERATOR
from artoo.contracts.errors import ArtooError, ConfigurationError
from artoo.runtime.config.model import Config
from artoo.tasklog.layout import part_path, task_directory
from artoo.team.office import open_office
from artoo.tools.core.to_thread import in_thread

if TYPE_CHECKING:
    from artoo.runtime.cluster.remote_logs import Elsewhere

logger = logging.getLogger(__name__)

EVERY_SECONDS = 10.0
WAITED_SECONDS = 0.5
STORE_SECONDS = 3.0
"""How long to wait for the team's database, which may be in a remote store."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The work of the team that needs the operator. `why` is set when the database cannot be read."""

    tasks: tuple[Left, ...] = ()
    letters: int = 0
    why: str = ""


async def waiting_for_operator(config: Config) -> Waiting:
    """Read the work that needs the operator. In a home without a team, no database is created.

    If the store cannot be reached, `why` says so, and the rest of the page is still shown.
    """
    if config.store is None and not await asyncio.to_thread(books_of(config).exists):
        return Waiting()
    try:
        async with asyncio.timeout(STORE_SECONDS), open_office(config) as office:
            return Waiting(
                await left_to_operator(office.database, office.policies), await office.mailbox.unread(OPERATOR)
            )
    except ArtooError as error:
        return Waiting(why=str(error))
    except TimeoutError:
        return Waiting(why=f"no answer within {STORE_SECONDS:g} s; `artoo status` says more")


def books_of(config: Config) -> Path:
    """Return the path of the team's database."""
    return database_path(config.runtime.memory.episodic.activity_db, config.home)


@dataclass(frozen=True, slots=True)
class Shared:
    """The latest known tasks of other machines, and the latest known work that needs the operator."""

    tasks: tuple[Elsewhere, ...] = ()
    team: Waiting = field(default_factory=Waiting)


@dataclass(slots=True)
class Others:
    """The cache of the shared state in one web server."""

    _known: Shared = field(default_factory=Shared)
    _looked_at: float = float("-inf")
    _looking: asyncio.Task[Shared] | None = None

    async def seen(self, config: Config, limit: int) -> Shared:
        """Return the present state, with at most `limit` tasks."""
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
    # The database driver is installed only where a store is shared.
    from artoo.runtime.cluster.remote_logs import list_elsewhere
    from artoo.store.address import parse

    if config.store is None:
        return Shared()
    try:
        tasks = list_elsewhere(config.home, parse(config.store), limit)
    except ArtooError as error:
        return Shared(known.tasks, Waiting(why=str(error)))
    return Shared(tuple(tasks), asyncio.run(waiting_for_operator(config)))


def copied(home: Path, task_id: str) -> Path | None:
    """Return the copy of another machine's log, or None if there is no copy yet. Blocks."""
    from artoo.runtime.cluster.remote_logs import FOLDER

    machines = home / FOLDER
    places = (task_directory(each, task_id) for each in sorted(machines.iterdir())) if machines.is_dir() else ()
    return next((place for place in places if part_path(place, 0).exists()), None)


def fetch(config: Config, task_id: str) -> None:
    """Update the copy of a task's log from the store, if the store has the task. Blocks."""
    from artoo.runtime.cluster.remote_logs import find_log_elsewhere
    from artoo.store.address import parse

    if config.store is None:
        return
    try:
        find_log_elsewhere(config.home, parse(config.store), task_id)
    except ConfigurationError as error:
        logger.info("no log of task %s: %s", task_id, error)
