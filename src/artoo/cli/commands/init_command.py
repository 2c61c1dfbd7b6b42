"""`artoo init`: artoo's home, with a commented configuration and its schema for editors."""

from __future__ import annotations

import json
import os
from importlib.resources import files

import click

from artoo.cli.commands.options import HELP
from artoo.contracts.errors import ConfigurationError
from artoo.disk.whole import write_new, write_whole
from artoo.runtime.app.home import CONFIG_NAME, default_home
from artoo.runtime.config.model import Config

SCHEMA_NAME = "config.schema.json"


@click.command(context_settings=HELP)
@click.option("--force", is_flag=True, help="Replace an existing configuration.")
@click.option("--schema", is_flag=True, help="Only print the JSON schema of the configuration.")
def init(force: bool, schema: bool) -> None:
    """Write a commented configuration (never over an existing one, unless --force)."""
    if schema:
        click.echo(schema_text(), nl=False)
        return
    home = default_home(os.environ)
    path = home / CONFIG_NAME
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists() and not force:
            raise ConfigurationError(f"{path} is already there; --force replaces it")
        (write_whole if force else write_new)(path, template_text().encode())
        write_whole(home / SCHEMA_NAME, schema_text().encode())
    except FileExistsError as error:
        raise ConfigurationError(f"{error.filename or path} is in the way; move it, or set ARTOO_HOME") from error
    except OSError as error:
        raise ConfigurationError(f"{error.filename or home} cannot be written: {error.strerror}") from error
    click.echo(f"Wrote {path}. Nothing in it needs to be changed; artoo doctor checks it.")


def template_text() -> str:
    """The commented configuration, every value the default."""
    return files("artoo.runtime").joinpath("config_template.yaml").read_text(encoding="utf-8")


def schema_text() -> str:
    """The JSON schema of the configuration, for editors."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
