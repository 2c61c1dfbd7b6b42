"""`artoo init` and `artoo config path|get|set`: the configuration file, its commented template and JSON schema."""

from __future__ import annotations

import os
import re
from typing import cast

import click

from artoo.cli.commands.group import SETTINGS, LazyGroup
from artoo.cli.commands.options import HELP
from artoo.cli.display.sanitize import show
from artoo.contracts.errors import ConfigurationError
from artoo.settings.places import Value

_NAME = re.compile(r'"[^"]+"|[^."]+')
_KEY = re.compile(rf"(?:{_NAME.pattern})(?:\.(?:{_NAME.pattern}))*")

SCHEMA_NAME = "config.schema.json"


@click.group(cls=LazyGroup, mounted=SETTINGS, context_settings=HELP)
def config() -> None:
    """Show the configuration, or change one value of its file."""


@config.command(context_settings=HELP)
def path() -> None:
    """Show the path of the configuration file."""
    from artoo.runtime.app.home import config_file, default_home

    show(str(config_file(default_home(os.environ))))


@config.command(context_settings=HELP)
@click.argument("key", required=False)
def get(key: str | None) -> None:
    """Show the settings in effect, from the file and the environment: KEY (as in limits.calls), or all.

    Put a name with dots in quotes: 'prices.models."gpt-4.1"'.
    """
    import yaml

    from artoo.runtime.config.loader import load_config

    value: object = load_config().model_dump(mode="json", by_alias=True)
    for name in _route(key) if key else ():
        if not isinstance(value, dict) or name not in value:
            raise ConfigurationError(f"there is no setting {key!r}; artoo config get shows all")
        value = cast("dict[str, object]", value)[name]
    written = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    show(written.removesuffix("...\n").rstrip())


@config.command(name="set", context_settings={**HELP, "ignore_unknown_options": True})
@click.argument("key")
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Set KEY to VALUE (in YAML) in the configuration file. Invalid values are refused.

    Put a name with dots in quotes: 'prices.models."gpt-4.1"'.
    """
    import yaml

    from artoo.runtime.app.home import config_file, default_home
    from artoo.runtime.config.loader import checked
    from artoo.settings.text_file import bytes_of, decoded, put
    from artoo.settings.yaml_edit import with_value
    from artoo.settings.yaml_file import parse

    file = config_file(default_home(os.environ))
    try:
        meant = cast(Value, yaml.safe_load(value))
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{value!r} cannot be read as a value; put quotes around it") from error
    text = decoded(bytes_of(file) or b"", file)
    # An error in the file is reported first, with its position. Otherwise the new value would seem to be wrong.
    parse(text, file)
    # The text of the file is edited in place, so that comments and the order of settings stay.
    changed = with_value(text, _route(key), meant)
    checked(changed, file, {})
    put(file, changed)
    show(f"{key} is {value} now, in {file}")


def _route(key: str) -> list[str]:
    """Split KEY into the names of nested settings. A name with dots (such as gpt-4.1) must be quoted."""
    if not _KEY.fullmatch(key):
        raise ConfigurationError(f"{key!r} names no setting; names stand with dots between, as in limits.calls")
    return [name.strip('"') for name in _NAME.findall(key)]


@config.command(context_settings=HELP)
@click.option("--force", is_flag=True, help="Replace an existing configuration.")
@click.option("--schema", is_flag=True, help="Only print the JSON schema of the configuration.")
def init(force: bool, schema: bool) -> None:
    """Write a commented configuration, if there is none."""
    from artoo.disk.whole import write_new, write_whole
    from artoo.runtime.app.home import config_file, default_home
    from artoo.runtime.config.template import template_text

    if schema:
        click.echo(schema_text(), nl=False)
        return
    home = default_home(os.environ)
    path = config_file(home)
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


def schema_text() -> str:
    """Return the JSON schema of the configuration, for editors."""
    import json

    from artoo.runtime.config.model import Config

    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
