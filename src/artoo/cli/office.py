"""What the commands about a team share: the home's books, opened for one command, and how ids are written."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

import click

from artoo.contracts.base import Contract
from artoo.contracts.errors import ConfigurationError

if TYPE_CHECKING:
    from artoo.runtime.config import Config
    from artoo.runtime.team.office import Office

T = TypeVar("T")

LONGEST_INPUT = 1_000_000
"""Bytes that are read from standard input."""

ID_SHOWN = 13
"""Characters of an id that are shown: for a UUIDv7 its whole time stamp."""

JsonObject = dict[str, object]

HELP: dict[str, object] = {"help_option_names": ["-h", "--help"]}

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


@runtime_checkable
class HasHome(Protocol):
    """What the main command puts into the click context, as far as these groups read it."""

    @property
    def home(self) -> Path: ...


def config_of(context: click.Context) -> Config:
    """The configuration below the main command's home."""
    from artoo.runtime.config_file import load_config

    given: object = context.find_root().obj
    environ = dict(os.environ)
    if isinstance(given, HasHome):
        environ["ARTOO_HOME"] = str(given.home)
    return load_config(environ)


def in_office(context: click.Context, work: Callable[[Office], Awaitable[T]]) -> T:
    """Runs `work` with the books of this home, whether or not anybody serves it."""
    from artoo.runtime.team.office import open_office

    async def run() -> T:
        async with open_office(config_of(context)) as office:
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


def print_json(found: object) -> None:
    """One JSON value on standard output."""
    from artoo.cli.printable import show

    show(json.dumps(found, ensure_ascii=False, indent=2))


def plain_object(value: Contract) -> JsonObject:
    """A contract as JSON."""
    return value.model_dump(mode="json")
