"""Open the team's database for one command, and resolve beginnings of ids."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from artoo.contracts.errors import ConfigurationError
from artoo.runtime.config.loader import load_config

if TYPE_CHECKING:
    from pydantic import BaseModel

    from artoo.team.office import Office

T = TypeVar("T")

JsonObject = dict[str, object]


def in_office(work: Callable[[Office], Awaitable[T]]) -> T:
    """Run `work` with the team database of this home, whether `artoo serve` is running or not."""
    from artoo.team.office import open_office

    async def run() -> T:
        async with open_office(load_config()) as office:
            return await work(office)

    return asyncio.run(run())


def the_one(beginning: str, ids: Sequence[str], what: str) -> str:
    """Return the only id with this beginning. Raises ConfigurationError if no id has this beginning, or if several
    do."""
    if not beginning:
        raise ConfigurationError(f"an empty text names no {what}; `artoo {what} list` shows those there are")
    found = [one for one in ids if one.startswith(beginning)]
    # a complete id is unambiguous even if another id begins with it
    if beginning in found:
        return beginning
    if len(found) != 1:
        problem = f"there is no {what}" if not found else f"{len(found)} of them begin with"
        raise ConfigurationError(f"{problem} {beginning!r}; `artoo {what} list` shows those there are")
    return found[0]


def plain_object(value: BaseModel) -> JsonObject:
    """Return a contract, or another model, as JSON."""
    return value.model_dump(mode="json")
