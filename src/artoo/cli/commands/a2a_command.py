"""`artoo a2a`: artoo among foreign agents."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec

import click

from artoo.cli.commands.options import HELP
from artoo.cli.results.home import current_config
from artoo.cli.results.redact_output import say
from artoo.contracts.errors import ConfigurationError


@click.command(context_settings=HELP)
@click.option("--port", type=click.IntRange(0, 65_535), default=8_723, show_default=True, help="0: any free one.")
def a2a(port: int) -> None:
    """Serve A2A by HTTP on loopback: foreign agents that config.yaml names hand tasks to the team, until Ctrl-C.

    What they hand in comes onto the board, under your policy for each. The team works in this process, unless
    artoo serve runs. Letters to a2a:NAME go out from here. docs/protocols.md says how.
    """
    if find_spec("a2a") is None:
        raise ConfigurationError("A2A needs its library: pip install 'artoo[a2a]'")
    from artoo.protocols.a2a.serving import serve  # the SDK: only when it serves

    asyncio.run(serve(current_config(), port, say))
