"""`artoo model list|pull|use|remove`: manage the files of local models."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from artoo.cli.commands.exit_codes import INTERRUPTED
from artoo.cli.commands.options import as_json_option
from artoo.cli.display.sanitize import print_json
from artoo.cli.display.side_channel import MEGABYTE, Fetch
from artoo.cli.results.home import current_home
from artoo.llm.embedded.fetch import fetch_model
from artoo.llm.embedded.store import KnownModel, ModelStore


def model_store() -> ModelStore:
    """Return the store of models in artoo's home."""
    return ModelStore(current_home())


@click.group("model")
def model_group() -> None:
    """List, download, choose and remove local models."""


@model_group.command("list")
@as_json_option
def list_models(as_json: bool) -> None:
    """Show the models that artoo knows, and which one is used."""
    entries = model_store().entries()
    if as_json:
        print_json(entries)
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
    store = model_store()
    model = store.active() if name is None else store.find(name)
    if not isinstance(model, KnownModel):
        store.check_file(model)
        click.echo(f"{model} is a file of your own; there is nothing to fetch")
        return
    fetch, shown = Fetch(), ""

    def changed() -> None:
        nonlocal shown
        if fetch.line != shown:
            shown = fetch.line
            click.echo(shown, err=True)

    fetch.changed = changed
    try:
        path = asyncio.run(fetch_model(store, model, report=fetch))
    except KeyboardInterrupt:
        click.echo("Interrupted. `artoo model pull` continues where it stopped.", err=True)
        context.exit(INTERRUPTED)
    click.echo(f"{model.name} is here and verified: {path}")


@model_group.command("use")
@click.argument("name_or_path")
def use_model(name_or_path: str) -> None:
    """Use a known model, or any GGUF file, from now on."""
    store = model_store()
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
def remove_model(name: str, yes: bool) -> None:
    """Delete a model that artoo fetched, with its incomplete downloads."""
    store = model_store()
    # This is checked before the question. Otherwise the user would be asked about a removal that is not possible.
    store.require_removable(name)
    if not yes:
        click.confirm(f"Delete {name} below {store.directory}?", abort=True)
    freed = store.remove(name)
    click.echo(f"Removed {name}: {freed / MEGABYTE:,.0f} MB freed" if freed else f"{name} was not here")
