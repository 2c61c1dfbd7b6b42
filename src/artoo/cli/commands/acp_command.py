"""`artoo acp`: artoo as the agent of an editor."""

from __future__ import annotations

import asyncio
import sys

import click

from artoo.cli.commands.options import HELP


@click.command(context_settings=HELP)
def acp() -> None:
    """Serve the Agent Client Protocol on standard input and output: an editor starts this.

    docs/protocols.md says what to put into the editor's settings.
    """
    from artoo.protocols.acp.serving import serve  # the library and its schema: only when it serves
    from artoo.runtime.config.loader import load_config

    if sys.stdin.isatty():
        click.echo("artoo: an editor starts this and speaks to it; Ctrl-D ends it", err=True)
    asyncio.run(serve(load_config()))
