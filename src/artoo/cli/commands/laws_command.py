"""`artoo laws`: the Four Laws, and the code that enforces each."""

from __future__ import annotations

import click

from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.display.sanitize import print_json
from artoo.prompts.laws import LAWS


@click.command(context_settings=HELP)
@as_json_option
def laws(as_json: bool) -> None:
    """Show the Four Laws and what enforces them. A lower number overrides a higher one."""
    if as_json:
        print_json(LAWS)
        return
    for law in LAWS:
        click.echo(f"Law {law.number}: {law.name}")
        click.echo(f"  {law.text}")
        for place in law.enforced_by:
            click.echo(f"    - {place}")
        click.echo()
