"""`artoo store init|check|import|export`: the PostgreSQL database that several machines share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.display.sanitize import print_json
from artoo.contracts.errors import ConfigurationError
from artoo.runtime.config.loader import load_config

if TYPE_CHECKING:
    from artoo.cluster.migrate import Counted, Part
    from artoo.runtime.config.model import Config
    from artoo.store.address import StoreAddress

_url = click.argument("url", required=False)


@click.group(context_settings=HELP)
def store() -> None:
    """Manage the PostgreSQL that several machines share (docs/many-machines.md). URL defaults to `store`."""


@store.command()
@_url
def init(url: str | None) -> None:
    """Create or update the tables, and give the roles their rights.

    Run it as the owner of the database, once for all machines.
    """
    from artoo.store.schema import migrate, version

    address = _address(load_config(), url)
    made = _explained(address, "set up", lambda: migrate(address))
    for name in made:
        click.echo(f"made {name}")
    click.echo(f"the store is at schema {version()}" + ("" if made else ", as it was"))


@store.command()
@_url
@as_json_option
def check(url: str | None, as_json: bool) -> None:
    """Check the connection and the schema of the store, and count and hash its rows."""
    config = load_config()
    address = _address(config, url)
    found = {part.name: part.in_store(address) for part in _parts(config)}
    _show(found, as_json)


@store.command(name="import")
@_url
@as_json_option
def import_(url: str | None, as_json: bool) -> None:
    """Copy the data of this home into an empty store. The home keeps its data."""
    _move(url, as_json, lambda part, address: part.move_in(address))


@store.command()
@_url
@as_json_option
def export(url: str | None, as_json: bool) -> None:
    """Copy the data of the store into this home, which must be empty. The store keeps its data."""
    _move(url, as_json, lambda part, address: part.move_out(address))


def _move(url: str | None, as_json: bool, move: Callable[[Part, StoreAddress], Sequence[Counted]]) -> None:
    from artoo.team.locks import only_instance

    config = load_config()
    address = _address(config, url)
    with only_instance(config.home):
        moved = {part.name: move(part, address) for part in _parts(config)}
    _show(moved, as_json)


def _parts(config: Config) -> tuple[Part, ...]:
    from artoo.cluster.migrate import parts

    return parts(config)


def _address(config: Config, url: str | None) -> StoreAddress:
    """Return the address of the store. Raises ConfigurationError."""
    from artoo.store.address import EXAMPLE, parse
    from artoo.store.connecting import check_installed

    given = url or config.store
    if given is None:
        raise ConfigurationError(f"no store is configured; name one, like {EXAMPLE}, or set `store`")
    check_installed()
    return parse(given)


def _explained(address: StoreAddress, doing: str, work: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    import psycopg

    from artoo.store.connecting import explanation

    try:
        return work()
    except psycopg.Error as error:
        raise ConfigurationError(explanation(address, doing, error)) from error


def _show(found: Mapping[str, Sequence[Counted]], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    for part, counted in found.items():
        if not counted:
            click.echo(f"{part}: nothing")
        for one in counted:
            click.echo(f"{part} {one.table:<14} {one.rows:>8} rows  sha256 {one.sha256[:16]}")
