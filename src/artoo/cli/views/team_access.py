"""What the commands about a team share: the home's books, opened for one command, and how ids are written."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from artoo.contracts.errors import ConfigurationError
from artoo.runtime.config.loader import load_config

if TYPE_CHECKING:
    from pydantic import BaseModel

    from artoo.team.office import Office

T = TypeVar("T")

LONGEST_INPUT = 1_000_000
"""Bytes that are read from standard input."""

JsonObject = dict[str, object]


def in_office(work: Callable[[Office], Awaitable[T]]) -> T:
    """Runs `work` with the books of this home, whether or not anybody serves it."""
    from artoo.team.office import open_office

    async def run() -> T:
        async with open_office(load_config()) as office:
            return await work(office)

    return asyncio.run(run())


def the_one(beginning: str, ids: Sequence[str], what: str) -> str:
    """The only id that begins so. Raises ConfigurationError when there is none, or more than one."""
    if not beginning:
        raise ConfigurationError(f"an empty text names no {what}; `artoo {what} list` shows those there are")
    found = [one for one in ids if one.startswith(beginning)]
    if beginning in found:
        return beginning
    if len(found) != 1:
        problem = f"there is no {what}" if not found else f"{len(found)} of them begin with"
        raise ConfigurationError(f"{problem} {beginning!r}; `artoo {what} list` shows those there are")
    return found[0]


def text_of(words: tuple[str, ...]) -> str:
    """A text: the words of the command line, or standard input for a single `-`."""
    if words != ("-",):
        return " ".join(words)
    raw = sys.stdin.buffer.read(LONGEST_INPUT + 1)
    if len(raw) > LONGEST_INPUT:
        raise click.UsageError(f"the text is longer than {LONGEST_INPUT:,} bytes; put it into a file and name that")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.UsageError("the text on standard input is not UTF-8 text") from error


def plain_object(value: BaseModel) -> JsonObject:
    """A contract or another model as JSON."""
    return value.model_dump(mode="json")
