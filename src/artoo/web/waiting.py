"""What of the team waits for the operator, for the first page."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from artoo.agents.board.operator_todo import Left, left_to_operator
from artoo.agents.storage.database import database_path
from artoo.contracts.agents import OPERATOR
from artoo.contracts.errors import ArtooError
from artoo.runtime.config.model import Config
from artoo.team.office import open_office

STORE_SECONDS = 3.0
"""How long the team's books are waited for, which may lie in a store far away."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What of the team waits for the operator. `why`: what keeps that from being known; empty when it is known."""

    tasks: tuple[Left, ...] = ()
    letters: int = 0
    why: str = ""


async def waiting_for_operator(config: Config) -> Waiting:
    """For the first page. A home without a team stays one: no books are opened there.

    A store that is away keeps nobody from the rest of the page.
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
    """The file of the team's books."""
    return database_path(config.runtime.memory.episodic.activity_db, config.home)
