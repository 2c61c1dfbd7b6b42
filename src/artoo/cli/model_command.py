"""`artoo model list|pull|use|remove`: the embedded model's files, from the command line."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

import click

from artoo.contracts.errors import ArtooError, ConfigurationError
from artoo.llm.model_fetch import Report, fetch_model
from artoo.llm.model_store import KnownModel, ModelEntry, ModelStore

MEGABYTE = 1_000_000
EXIT_INTERRUPTED = 130


@runtime_checkable
class HasHome(Protocol):
    """What the main command puts into the click context, as far as this group reads it."""

    @property
    def home(self) -> Path: ...


def store_of(context: click.Context) -> ModelStore:
    """The model store below the main command's home, or below ARTOO_HOME (else ~/.artoo) when it gave none."""
    given: object = context.find_root().obj
    if isinstance(given, ModelStore):
        return given
    if isinstance(given, HasHome):
        return ModelStore(given.home)
    return ModelStore(Path(os.environ.get("ARTOO_HOME") or Path.home() / ".artoo").expanduser())


class ConfigurationFailed(click.ClickException):
    """A setting, an argument or a file is wrong."""

    exit_code = 2


class NoModel(click.ClickException):
    """No usable model could be had."""

    exit_code = 3


@contextmanager
def readable_errors() -> Generator[None]:
    """Turns artoo's errors into a message on stderr and the documented exit code."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationFailed(str(error)) from error
    except ArtooError as error:
        raise NoModel(str(error)) from error
    except OSError as error:
        where = error.filename or "a file of artoo's"
        raise ConfigurationFailed(f"{where} cannot be used ({error.strerror}); check its rights") from error


@click.group("model")
def model_group() -> None:
    """The local model: list, fetch, choose, remove."""


@model_group.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.pass_context
def list_models(context: click.Context, as_json: bool) -> None:
    """Show the models that artoo knows, and which one is used."""
    with readable_errors():
        entries = store_of(context).entries()
    if as_json:
        click.echo(json.dumps([_as_object(entry) for entry in entries], indent=2))
        return
    for entry in entries:
        mark = "*" if entry.active else " "
        state = "here" if entry.present else ("not fetched" if entry.name else "missing")
        licence = f", {entry.licence}" if entry.licence else ""
        click.echo(f"{mark} {entry.name or entry.path}  ({entry.size / MEGABYTE:,.0f} MB, {state}{licence})")
        if entry.name and entry.present:
            click.echo(f"    {entry.path}")


@model_group.command("pull")
@click.argument("name", required=False)
@click.pass_context
def pull_model(context: click.Context, name: str | None) -> None:
    """Fetch a model once (NAME, or the one in use) and verify it."""
    with readable_errors():
        store = store_of(context)
        model = store.active() if name is None else store.find(name)
        if not isinstance(model, KnownModel):
            store.check_file(model)
            click.echo(f"{model} is a file of your own; there is nothing to fetch")
            return
        with progress_report() as report:
            try:
                path = asyncio.run(fetch_model(store, model, report=report))
            except KeyboardInterrupt:
                click.echo("Interrupted; `artoo model pull` goes on where it stopped.", err=True)
                context.exit(EXIT_INTERRUPTED)
        click.echo(f"{model.name} is here and verified: {path}")


@model_group.command("use")
@click.argument("name_or_path")
@click.pass_context
def use_model(context: click.Context, name_or_path: str) -> None:
    """Use a known model, or any GGUF file, from now on."""
    with readable_errors():
        store = store_of(context)
        chosen = store.use(name_or_path)
    if isinstance(chosen, Path):
        click.echo(f"artoo now uses {chosen}")
    elif store.path_of(chosen).exists():
        click.echo(f"artoo now uses {chosen.name}")
    else:
        click.echo(f"artoo now uses {chosen.name}; fetch it with `artoo model pull`")


@model_group.command("remove")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def remove_model(context: click.Context, name: str, yes: bool) -> None:
    """Delete a model that artoo fetched, and what is left of fetching it."""
    with readable_errors():
        store = store_of(context)
        store.require_removable(name)
        if not yes:
            click.confirm(f"Delete {name} below {store.directory}?", abort=True)
        freed = store.remove(name)
    click.echo(f"Removed {name}: {freed / MEGABYTE:,.0f} MB freed" if freed else f"{name} was not here")


@contextmanager
def progress_report() -> Generator[Report]:
    """A progress bar on stderr while the block runs; without a terminal, one line for each phase."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _phase_lines()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("checking", total=None)
        shown = "checking"

        def show(done: int, total: int, phase: str) -> None:
            nonlocal shown
            if phase != shown:
                progress.reset(task)
                shown = phase
            progress.update(task, completed=done, total=total, description=phase)

        yield show


def _phase_lines() -> Callable[[int, int, str], None]:
    shown = ""

    def show(done: int, total: int, phase: str) -> None:
        nonlocal shown
        tenth = f"{phase}: {done * 10 // max(1, total) * 10} % of {total / MEGABYTE:,.0f} MB"
        if tenth != shown:
            shown = tenth
            click.echo(tenth, err=True)

    return show


def _as_object(entry: ModelEntry) -> dict[str, str | int | bool | None]:
    return {
        "name": entry.name,
        "path": str(entry.path),
        "size": entry.size,
        "present": entry.present,
        "active": entry.active,
        "licence": entry.licence,
    }
