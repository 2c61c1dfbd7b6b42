"""`artoo laws`: the Four Laws, and the code that enforces each."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from artoo.prompts.laws import LAWS


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def laws(as_json: bool) -> None:
    """Show the Four Laws and what enforces them. A lower number overrides a higher one."""
    if as_json:
        click.echo(json.dumps([asdict(law) for law in LAWS], indent=2, ensure_ascii=False))
        return
    for law in LAWS:
        click.echo(f"Law {law.number}: {law.name}")
        click.echo(f"  {law.text}")
        for place in law.enforced_by:
            click.echo(f"    - {place}")
        click.echo()
